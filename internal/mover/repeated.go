package mover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

const (
	// tallyBuckets is the number of counters by which keys are told apart: a
	// quarter of a megabyte for each slice under way, whatever the number of keys.
	tallyBuckets = 1 << 16
	// mostSuspects is how many buckets are looked into: 4/65536 of all keys are in
	// memory then.
	mostSuspects = 4
)

// keyScanner is a destination whose rows have keys that can be read back.
type keyScanner interface {
	// scanKeys calls fn for each distinct row key of a round, from several
	// goroutines at once. The key is valid during the call.
	scanKeys(ctx context.Context, p *part, fn func(key []byte) error) error
}

// lost tells whether keys are missing that were acknowledged.
func (r *run) lost(p *part) bool {
	for _, i := range p.units {
		if u := r.units[i]; u.moved != nil && u.count.Checked && uint64(u.moved.ack.Rows) > u.count.Keys {
			return true
		}
	}
	return false
}

// findRepeated describes two rows with one key, or gives "" if there are none. It
// counts the keys that are there, and those of the source's rows, into buckets, and
// keeps the source's rows of buckets that differ: so all slices are asked twice more, which is worth it
// where somebody has to find out what is wrong with the job.
func (r *run) findRepeated(ctx context.Context, p *part, dest keyScanner) (string, error) {
	there, sent := newKeyTally(r), newKeyTally(r)
	there.seed = sent.seed
	err := dest.scanKeys(ctx, p, func(key []byte) error {
		b := there.bucket(key)
		there.mu.Lock()
		defer there.mu.Unlock()
		there.counts[b]++
		return nil
	})
	if err == nil {
		_, err = r.replay(ctx, p, sent)
	}
	if err != nil {
		return "", err
	}
	look := newKeyTally(r)
	look.seed, look.rows = sent.seed, map[string]string{}
	for b := range sent.counts {
		if sent.counts[b] > there.counts[b] && len(look.suspects) < mostSuspects {
			look.suspects = append(look.suspects, b)
		}
	}
	if len(look.suspects) == 0 {
		return "", nil
	}
	_, err = r.replay(ctx, p, look)
	if look.found != "" {
		err = nil // it ended the replay
	}
	return look.found, err
}

// replay asks the slices of a round again, for a sink that only looks, and gives
// what came of each unit.
func (r *run) replay(ctx context.Context, p *part, s sink.Sink) ([]sliceCount, error) {
	quiet := *r.Mover
	quiet.Progress = new(report.Progress)
	id := newRunID(r.started)
	g := newGatherer(&quiet, r.id+"-again-"+id[len(id)-6:], r.src.client.Nodes(), &p.plan, s, newReadAhead(queueBytes, nil, r.Log, quiet.Progress))
	err := g.move(ctx, p.plan.Tasks())
	return g.counts, err
}

var (
	_ keyScanner = (*hbaseTable)(nil)
	_ keyScanner = (*clusters)(nil)
)

var errFound = errors.New("two rows with one key were found")

// A keyTally is a sink that counts the keys of rows by bucket, or, with
// suspects, looks for two rows with one key in these buckets.
type keyTally struct {
	run  *run
	seed maphash.Seed

	suspects []int

	mu     sync.Mutex
	counts []uint32
	rows   map[string]string // of the suspects, as text, by key
	found  string
}

var _ sink.Sink = (*keyTally)(nil)

func newKeyTally(r *run) *keyTally {
	return &keyTally{run: r, seed: maphash.MakeSeed(), counts: make([]uint32, tallyBuckets)}
}

func (t *keyTally) bucket(key []byte) int { return int(maphash.Bytes(t.seed, key) % tallyBuckets) }

// Writer opens a writer, whose rows count when it commits.
func (t *keyTally) Writer(_ context.Context, s sink.Slice) (sink.Writer, error) {
	return &keyLooker{tally: t, slice: s, counts: make([]uint32, tallyBuckets)}, nil
}

// Close does nothing.
func (t *keyTally) Close() error { return nil }

// A keyLooker sees the rows of one attempt of a slice.
type keyLooker struct {
	tally  *keyTally
	slice  sink.Slice
	key    []byte
	counts []uint32
	seen   [][2]string // keys and rows of suspects
	rows   int64
}

func (l *keyLooker) Write(_ context.Context, rows *row.Batch) error {
	for i := range rows.Len() {
		values := rows.Row(i)
		var err error
		if l.key, err = l.tally.run.src.codec.AppendKey(l.key[:0], l.slice.Unit, values); err != nil {
			return err
		}
		b := l.tally.bucket(l.key)
		l.counts[b]++
		for _, suspect := range l.tally.suspects {
			if b == suspect {
				l.seen = append(l.seen, [2]string{string(l.key), l.tally.run.describe(l.slice.Unit.Level, values) + " of slice " + l.slice.Name})
			}
		}
	}
	l.rows += int64(rows.Len())
	return nil
}

// Commit adds what was seen to that of the other slices.
func (l *keyLooker) Commit(context.Context) (sink.Ack, error) {
	t := l.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	for b, n := range l.counts {
		t.counts[b] += n
	}
	for _, s := range l.seen {
		if first, twice := t.rows[s[0]]; twice {
			t.found = fmt.Sprintf("two rows have the key %q: %s and %s", s[0], first, s[1])
			return sink.Ack{}, errFound
		}
		t.rows[s[0]] = s[1]
	}
	return sink.Ack{Rows: l.rows}, nil
}

// Abort forgets the rows.
func (l *keyLooker) Abort() {}

// describe shows a row as JSON.
func (r *run) describe(level int, values []row.Value) string {
	columns := make([]row.Column, 0, len(values))
	for _, d := range r.Job.Levels[level].Dimensions {
		columns = append(columns, r.src.dims[d])
	}
	columns = append(columns, r.src.metrics...)
	text := []byte{'{'}
	for i, c := range columns {
		if i > 0 {
			text = append(text, ',')
		}
		name, _ := json.Marshal(c.Name) // a text: it cannot fail
		text = append(append(text, name...), ':')
		var v any
		if !values[i].Null {
			v = rowkey.ValueJSON(c.Type, values[i], r.Job.Timezone)
		}
		value, err := json.Marshal(v)
		if err != nil {
			value = []byte(`"?"`)
		}
		text = append(text, value...)
	}
	return string(append(text, '}'))
}
