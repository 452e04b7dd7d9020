package hbase_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	hbasesink "github.com/ck2hbase/ck2hbase/internal/sink/hbase"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

// startHBase starts an HBase of the test's own, which it may break.
func startHBase(t *testing.T, o lab.HBaseOptions) (*lab.HBase, *hbase.Client) {
	t.Helper()
	o.Log = quiet()
	h, err := lab.StartHBase(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := hbase.Dial(t.Context(), job.HBaseCluster{Name: "lab", ZooKeeper: []string{h.Quorum()}, ZNode: h.ZNode()}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return h, c
}

// steadily writes slices of 500 rows by two writers at once until stop says so,
// and gives the number of rows that were committed.
func steadily(t *testing.T, s *hbasesink.Sink, f sinktest.Fixture, stop func() bool) int {
	t.Helper()
	const size = 500
	var mu sync.Mutex
	next := 0
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				if stop() {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				w, err := s.Writer(t.Context(), f.Slice(i, 1))
				if err == nil {
					if err = w.Write(t.Context(), sinktest.Rows(i*size, (i+1)*size)); err == nil {
						_, err = w.Commit(t.Context())
					} else {
						w.Abort()
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return next * size
}

// TestRegionServersDie: both region servers have so small a memstore that they
// refuse rows all the time, and one after the other is killed and restarted,
// three times, while rows are written: every row is there, and the pace followed.
// The table would do without a write-ahead log, if the job did not want one.
func TestRegionServersDie(t *testing.T) {
	t.Parallel()
	h, c := startHBase(t, lab.HBaseOptions{Split: true, Heap: "512m", SessionTimeout: 4 * time.Second, Properties: map[string]string{
		// A region to be flushed refuses rows until it is done, on a fast machine, too.
		"hbase.hregion.memstore.flush.size":       "32768",
		"hbase.hregion.memstore.block.multiplier": "1",
		"hbase.table.sanity.checks":               "false",
	}})
	f := sinktest.NewFixture(t)
	cfg := config(t, c, f)
	cfg.Batch, cfg.WAL, cfg.Rate = job.Batch{Rows: 200, Bytes: 1 << 20, InFlight: 4}, job.WALOn, job.Rate{Rows: 3000}
	if err := h.Admin(t.Context(), "durability", cfg.Table, "SKIP_WAL"); err != nil {
		t.Fatal(err)
	}
	s := open(t, cfg)
	killed := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	go func() {
		killed <- func() error {
			for i := range 3 {
				victim := h.RegionServers[i%2]
				before := s.Stats().Rows
				if err := victim.Kill(); err != nil {
					return err
				}
				// The rows of the dead server go on when the other has its regions.
				for s.Stats().Rows < before+1000 {
					if ctx.Err() != nil {
						return fmt.Errorf("no progress after the death of %s: %+v", victim.Name, s.Stats())
					}
					time.Sleep(50 * time.Millisecond)
				}
				if err := victim.Restart(ctx); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	over, slowest := false, int64(0)
	rows := steadily(t, s, f, func() bool {
		if p := s.Stats().Pace; p > 0 && (slowest == 0 || p < slowest) {
			slowest = p
		}
		select {
		case err := <-killed:
			if over = true; err != nil {
				t.Error(err)
			}
		default:
		}
		return over || ctx.Err() != nil
	})
	st := s.Stats()
	t.Logf("%d rows, %+v, slowest pace %d rows/s", rows, st, slowest)
	if st.Pushbacks == 0 || slowest == 0 {
		t.Errorf("the servers were not too busy: %+v", st)
	}
	want, _ := f.Want(t, 0, rows)
	if got := read(t, c, cfg.Table); !cmp.Equal(got, want) {
		t.Errorf("%d rows of %d, or other cells", len(got), len(want))
	}
}

// TestDisturbed: ZooKeeper is away for some seconds, the master dies and comes
// back, and regions are split while rows are written: the writers go on, and every
// row is there.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	h, c := startHBase(t, lab.HBaseOptions{Split: true, Heap: "512m"})
	f := sinktest.NewFixture(t)
	cfg := config(t, c, f)
	cfg.Rate = job.Rate{Rows: 3000}
	s := open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	written := func(what string) error { // that rows go on being written
		for before := s.Stats().Rows; s.Stats().Rows < before+1000; time.Sleep(20 * time.Millisecond) {
			if ctx.Err() != nil {
				return fmt.Errorf("no progress: %s: %+v", what, s.Stats())
			}
		}
		return nil
	}
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			if err := h.ZooKeeper.Pause(); err != nil {
				return err
			}
			rest(ctx, 3*time.Second)
			if err := h.ZooKeeper.Resume(); err != nil {
				return err
			}
			if err := written("after ZooKeeper was away"); err != nil {
				return err
			}
			if err := h.Master.Kill(); err != nil {
				return err
			}
			if err := written("while the master is away"); err != nil {
				return err
			}
			if err := h.Master.Restart(ctx); err != nil {
				return err
			}
			keys, err := c.Regions(ctx, cfg.Table)
			if err != nil {
				return err
			}
			// In the middle of the second region's keys, which have a salt in front.
			if err := h.Admin(ctx, "split", cfg.Table, string(keys[1].Start)+"8"); err != nil {
				return err
			}
			return written("after a split")
		}()
	}()
	over := false
	rows := steadily(t, s, f, func() bool {
		select {
		case err := <-done:
			if over = true; err != nil {
				t.Error(err)
			}
		default:
		}
		return over || ctx.Err() != nil
	})
	want, _ := f.Want(t, 0, rows)
	if got := read(t, c, cfg.Table); !cmp.Equal(got, want) {
		t.Errorf("%d rows of %d, or other cells", len(got), len(want))
	}
}

// rest waits, or returns when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
