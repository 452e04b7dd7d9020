package mover

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/spool"
)

// textBatch has n rows whose numbers go on from first.
func textBatch(r *readAhead, first, n int) *row.Batch {
	b := r.batch(2)
	for i := range n {
		b.Values = append(b.Values, row.Value{Kind: row.UInt, Num: uint64(first + i)}, row.Value{Kind: row.String, Str: strings.Repeat("x", i)})
	}
	return b
}

func newTestAhead(t *testing.T, memory, disk int64) (*readAhead, *report.Progress) {
	t.Helper()
	var s *spool.Spool
	if disk > 0 {
		var err error
		if s, err = spool.Open(t.TempDir(), disk); err != nil {
			t.Fatal(err)
		}
	}
	p := new(report.Progress)
	return newReadAhead(memory, s, slog.New(slog.DiscardHandler), p), p
}

// Whatever the room, rows come out in the order in which they went in, on all
// lanes at once, and all room is there again at the end.
func TestLanesKeepTheOrder(t *testing.T) {
	const lanes, batches, rows = 3, 400, 5
	for name, room := range map[string]struct{ memory, disk int64 }{
		"memory for all":            {1 << 30, 1 << 20},
		"memory for some, no spool": {2000, 0},
		"memory and a small spool":  {2000, 3000},
		"memory for one":            {1, 1 << 20},
		"a spool for none":          {2000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newTestAhead(t, room.memory, room.disk)
			var wg sync.WaitGroup
			for range lanes {
				l := r.lane()
				wg.Go(func() {
					for i := range batches {
						if err := l.put(t.Context(), textBatch(r, i*rows, rows)); err != nil {
							t.Error(err)
							return
						}
					}
					l.end()
				})
				wg.Go(func() {
					defer l.close()
					want := uint64(0)
					for {
						q, more, err := l.next(t.Context())
						if err != nil || !more {
							if err != nil || want != batches*rows {
								t.Errorf("%v after %d rows", err, want)
							}
							return
						}
						for i := range q.Len() {
							if got := q.Row(i); got[0].Num != want || len(got[1].Str) != i {
								t.Errorf("row %d came where row %d was due", got[0].Num, want)
								return
							}
							want++
						}
						r.release(q)
					}
				})
			}
			wg.Wait()
			if r.room != room.memory || r.spool != nil && r.spool.Used() != 0 {
				t.Errorf("%d bytes of memory are free of %d", r.room, room.memory)
			}
			if spooled := p.Snapshot().SpooledBytes; spooled > 0 && (room.memory == 1<<30 || room.disk < 100) {
				t.Errorf("%d bytes were spooled", spooled)
			}
		})
	}
}

// Nobody takes anything, and yet all is put: what is not in memory is on disk.
func TestLaneNobodyTakesFrom(t *testing.T) {
	r, p := newTestAhead(t, 1000, 1<<20)
	l := r.lane()
	const batches = 100
	for i := range batches {
		if err := l.put(t.Context(), textBatch(r, i, 3)); err != nil {
			t.Fatal(err)
		}
	}
	l.end()
	if used := r.spool.Used(); used == 0 || p.Snapshot().SpooledBytes != used {
		t.Errorf("%d bytes are on disk, %d were counted", used, p.Snapshot().SpooledBytes)
	}
	for i := range batches {
		q, more, err := l.next(t.Context())
		if err != nil || !more || q.Row(0)[0].Num != uint64(i) {
			t.Fatalf("batch %d: %v, %v", i, more, err)
		}
		r.release(q)
	}
	if _, more, err := l.next(t.Context()); more || err != nil {
		t.Error(more, err)
	}
}

// Who waits for room, or for rows, hears of the end.
func TestLaneIsLeft(t *testing.T) {
	over := errors.New("over")
	for name, disk := range map[string]int64{"no spool": 0, "small spool": 500} {
		t.Run(name, func(t *testing.T) {
			r, _ := newTestAhead(t, 1000, disk)
			l := r.lane()
			ctx, cancel := context.WithCancelCause(t.Context())
			full := make(chan error)
			go func() {
				for {
					if err := l.put(ctx, textBatch(r, 0, 3)); err != nil {
						full <- err
						return
					}
				}
			}()
			other := r.lane()
			idle := make(chan error)
			go func() {
				_, _, err := other.next(ctx)
				idle <- err
			}()
			cancel(over)
			if err := <-full; !errors.Is(err, over) {
				t.Error(err)
			}
			if err := <-idle; !errors.Is(err, over) {
				t.Error(err)
			}
			l.close()
			other.close()
			if r.room != 1000 || r.spool != nil && r.spool.Used() != 0 {
				t.Errorf("%d bytes of memory are left", r.room)
			}
		})
	}
}

// A disk that cannot be written to any more makes reading wait, and loses nothing.
func TestLaneWithoutItsDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := spool.Open(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	r := newReadAhead(500, s, slog.New(slog.NewTextHandler(&log, nil)), new(report.Progress))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	l := r.lane()
	const batches = 50
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range batches {
			if err := l.put(t.Context(), textBatch(r, i, 3)); err != nil {
				t.Error(err)
			}
		}
		l.end()
	})
	got := 0
	for {
		q, more, err := l.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		if q.Row(0)[0].Num != uint64(got) {
			t.Errorf("batch %d came as batch %d", q.Row(0)[0].Num, got)
		}
		got++
		r.release(q)
	}
	wg.Wait()
	l.close()
	if got != batches || strings.Count(log.String(), "the spool's disk fails") != 1 {
		t.Errorf("%d batches: %s", got, log.String())
	}
}
