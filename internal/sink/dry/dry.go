// Package dry is the sink that writes nothing: it encodes rows as the HBase sink
// does, with all that can be wrong about that, and counts what would be written.
package dry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// Sink counts the rows of committed slices.
type Sink struct {
	keys    *rowkey.Codec
	cells   *rowkey.Cells
	columns []string
	sums    bool
	family  []byte
	names   [][]byte // the columns
	blind   []bool

	mu     sync.Mutex
	closed bool
	acks   map[sliceID]sink.Ack
}

// sliceID tells the slices of a run apart.
type sliceID struct {
	level  int
	period job.Period
	name   string
}

var _ sink.Sink = (*Sink)(nil)

// New makes a sink; columns are the qualifiers of the cells.
func New(keys *rowkey.Codec, cells *rowkey.Cells, columns []string) *Sink {
	return &Sink{keys: keys, cells: cells, columns: columns, acks: map[sliceID]sink.Ack{}}
}

// SumWith asks for the sums of a slice's cells in its acknowledgement, as those of
// the family; of blind columns only that they are there is summed. It is called
// before the first writer is opened.
func (s *Sink) SumWith(family string, blind []bool) {
	s.sums, s.family, s.blind = true, []byte(family), blind
	for _, q := range s.columns {
		s.names = append(s.names, []byte(q))
	}
}

// Writer opens a writer; it fails after Close only.
func (s *Sink) Writer(_ context.Context, slice sink.Slice) (sink.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the dry sink is closed")
	}
	w := &writer{sink: s, slice: slice}
	if s.sums {
		w.ack.Sums = new(checksum.Table)
	}
	return w, nil
}

// Close refuses new writers.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Committed sums the committed slices of a unit.
func (s *Sink) Committed(u job.Unit) sink.Ack {
	return s.sum(func(id sliceID) bool { return id.level == u.Level && id.period == u.Period.Period })
}

// Written sums what was committed.
func (s *Sink) Written() sink.Ack { return s.sum(func(sliceID) bool { return true }) }

func (s *Sink) sum(of func(sliceID) bool) sink.Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sink.Ack
	for id, ack := range s.acks {
		if of(id) {
			all.Add(ack)
		}
	}
	return all
}

type writer struct {
	sink      *Sink
	slice     sink.Slice
	key, cell []byte
	hasher    checksum.Hasher
	ack       sink.Ack
	err       error
	ended     bool
}

func (w *writer) Write(ctx context.Context, rows *row.Batch) error {
	if w.ended {
		return errors.New("dry sink: a write after the writer's end")
	}
	for i := 0; i < rows.Len() && w.err == nil; i++ {
		if w.err = interrupted(ctx); w.err == nil {
			w.err = w.row(rows.Row(i))
		}
	}
	return w.err
}

func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return failure.New(failure.Transient, context.Cause(ctx), "")
	}
	return nil
}

func (w *writer) row(values []row.Value) error {
	s := w.sink
	dims := len(values) - s.cells.Metrics()
	var err error
	if w.key, err = s.keys.AppendKey(w.key[:0], w.slice.Unit, values); err != nil {
		return err
	}
	if s.sums {
		w.hasher.Row(w.key)
	}
	one := sink.Ack{Rows: 1, Bytes: int64(len(w.key))}
	for i := range s.cells.Len() {
		var present bool
		if w.cell, present, err = s.cells.Append(w.cell[:0], i, values[dims:]); err != nil {
			return fmt.Errorf("the row with the key %q: %w", w.key, err)
		}
		if !present {
			continue
		}
		one.Add(sink.Ack{Cells: 1, Bytes: int64(len(s.columns[i]) + len(w.cell))})
		if s.sums {
			value := w.cell
			if s.blind[i] {
				value = nil
			}
			w.hasher.AddTo(w.ack.Sums, s.family, s.names[i], value)
		}
	}
	w.ack.Add(one)
	return nil
}

func (w *writer) Commit(ctx context.Context) (sink.Ack, error) {
	if w.ended {
		return sink.Ack{}, errors.New("dry sink: the writer has ended")
	}
	w.ended = true
	if w.err == nil {
		w.err = interrupted(ctx)
	}
	if w.err != nil {
		return sink.Ack{}, w.err
	}
	w.sink.mu.Lock()
	defer w.sink.mu.Unlock()
	w.sink.acks[sliceID{w.slice.Unit.Level, w.slice.Unit.Period.Period, w.slice.Name}] = w.ack
	return w.ack, nil
}

func (w *writer) Abort() { w.ended = true }
