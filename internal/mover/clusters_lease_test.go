package mover

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/memory"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

// A leaseStore is the ledger of a cluster that can be away.
type leaseStore struct {
	mu   sync.Mutex
	rows map[string][]byte
	away bool
}

func (s *leaseStore) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("the cluster is away")
	}
	return s.rows[key], nil
}

func (s *leaseStore) CompareAndPut(_ context.Context, key string, expected, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return false, errors.New("the cluster is away")
	}
	if now := s.rows[key]; (now == nil) != (expected == nil) || !bytes.Equal(now, expected) {
		return false, nil
	}
	s.rows[key] = value
	return true, nil
}

func (s *leaseStore) Scan(context.Context, string, func(string, []byte) error) error { return nil }

func (s *leaseStore) goAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
}

// takeOver is what another process does that holds this one for dead.
func (s *leaseStore) takeOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.rows {
		s.rows[key] = []byte("{}")
	}
}

// A gatedSink asks the lease before each write, as the HBase sink does before each request.
type gatedSink struct {
	*memory.Sink
	gate func(context.Context) (time.Time, error)
}

type gatedWriter struct {
	sink.Writer
	gate func(context.Context) (time.Time, error)
}

func (s gatedSink) Writer(ctx context.Context, slice sink.Slice) (sink.Writer, error) {
	w, err := s.Sink.Writer(ctx, slice)
	return gatedWriter{w, s.gate}, err
}

func (w gatedWriter) Write(ctx context.Context, rows *row.Batch) error {
	if _, err := w.gate(ctx); err != nil {
		return err
	}
	return w.Writer.Write(ctx, rows)
}

// A cluster that is away, or whose lease another process has, does not keep the
// other from its rows; it is left out when the lease is lost, and nothing is
// written to it from there on.
func TestClusterLosesItsLease(t *testing.T) {
	fix := sinktest.NewFixture(t)
	for name, lose := range map[string]func(*leaseStore){"away": (*leaseStore).goAway, "taken": (*leaseStore).takeOver} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limited, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				ctx, cancel := context.WithCancelCause(limited)
				m := &Mover{Job: &job.Job{HBase: job.HBase{Require: job.RequireAny}}, Log: slog.New(slog.DiscardHandler), Progress: new(report.Progress)}
				f := &fanout{clusters: &clusters{Mover: m, cancel: cancel}}
				sinks, stores := []*memory.Sink{memorySink(fix), memorySink(fix)}, []*leaseStore{{rows: map[string][]byte{}}, {rows: map[string][]byte{}}}
				for i, s := range sinks {
					tt := &target{hbaseTable: newHBaseTable(m, "r", time.Now(), i), name: string(rune('a' + i)), entered: true}
					var err error
					if tt.lease, tt.leased, err = ledger.New(stores[i], m.Log).Acquire(ctx, "j", "2026-11-29", ledger.Owner{Run: "r"}); err != nil {
						t.Fatal(err)
					}
					f.all = append(f.all, tt)
					b := f.newBranch(tt, roundSink{Sink: gatedSink{s, tt.lease.Sure}, tally: func() tally { return tally{} }}, 2)
					b.ahead = newReadAhead(3*int64(sinktest.Rows(0, 100).Size()), nil, m.Log, m.Progress)
					f.branches = append(f.branches, b)
				}
				f.watchLeases(ctx)
				half := 0
				for i := range 60 { // for ten minutes, with room for three slices in front of each
					if i == 3 {
						synctest.Wait()
						half = len(sinks[1].Rows())
						lose(stores[1])
						time.Sleep(26 * time.Second) // it is known by now that something is wrong
					}
					if err := write(ctx, f, fix, i); err != nil {
						t.Fatalf("slice %d: %v", i, err)
					}
					time.Sleep(10 * time.Second)
				}
				if err := f.settle(ctx); err != nil {
					t.Fatal(err)
				}
				if n := len(sinks[0].Rows()); n != 6000 {
					t.Errorf("the good cluster has %d rows of 6000", n)
				}
				if n := len(sinks[1].Rows()); n != half || n != 300 {
					t.Errorf("the cluster without a lease has %d rows, %d when it was lost", n, half)
				}
				if v := f.verdicts(nil); !errors.Is(f.all[1].err, ledger.ErrLost) || v[0].Error != "" || v[1].State != string(report.Interrupted) {
					t.Errorf("%v: %+v", f.all[1].err, v)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
				cancel(nil)
			})
		})
	}
}

// A row that all clusters have counts once; one that is left out does not count,
// and what was told is never taken back.
func TestTallyOfSeveralClusters(t *testing.T) {
	fix := sinktest.NewFixture(t)
	f, _ := fanned(t, job.RequireAny, 1<<20, memorySink(fix), memorySink(fix))
	now := []tally{{rows: 100, cells: 200, bytes: 3000, retries: 1}, {rows: 70, cells: 140, bytes: 2100, retries: 2}}
	for i, b := range f.branches {
		b.sink.tally = func() tally { return now[i] }
	}
	if got, want := f.tally(), (tally{rows: 70, cells: 140, bytes: 2100, retries: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := f.out(f.all[1], errors.New("gone")); err != nil {
		t.Fatal(err)
	}
	if got, want := f.tally(), (tally{rows: 100, cells: 200, bytes: 3000, retries: 3}); got != want {
		t.Errorf("one is left out: %+v, want %+v", got, want)
	}
	if err := f.out(f.all[0], errors.New("gone, too")); err == nil {
		t.Error("the run goes on without any cluster")
	}
	now[0].rows = 90
	if got, want := f.tally(), (tally{rows: 100, cells: 200, bytes: 3000, retries: 3}); got != want {
		t.Errorf("none is left: %+v, want %+v", got, want)
	}
}
