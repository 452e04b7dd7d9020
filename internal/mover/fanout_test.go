package mover

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/memory"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
	"github.com/ck2hbase/ck2hbase/internal/spool"
)

// fanned makes a fanout over sinks in memory, with room for so many bytes in
// front of each. The context that it gives is that of the run.
func fanned(t *testing.T, require job.Require, room int64, sinks ...*memory.Sink) (*fanout, context.Context) {
	t.Helper()
	m := &Mover{Job: &job.Job{HBase: job.HBase{Require: require}}, Log: slog.New(slog.DiscardHandler), Progress: new(report.Progress)}
	ctx, cancel := context.WithCancelCause(t.Context())
	f := &fanout{clusters: &clusters{Mover: m, cancel: cancel}}
	for i, s := range sinks {
		target := &target{hbaseTable: newHBaseTable(m, "r", time.Now(), i), name: string(rune('a' + i))}
		f.all = append(f.all, target)
		target.leased = ctx
		b := f.newBranch(target, roundSink{Sink: s, tally: func() tally { return tally{} }}, 2)
		b.ahead = newReadAhead(room, nil, m.Log, m.Progress)
		f.branches = append(f.branches, b)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		cancel(nil)
	})
	return f, ctx
}

func memorySink(f sinktest.Fixture) *memory.Sink { return memory.New(f.Keys, f.Cells, f.Columns) }

// write writes 100 rows as a slice of 5 batches.
func write(ctx context.Context, s sink.Sink, f sinktest.Fixture, slice int) error {
	w, err := s.Writer(ctx, f.Slice(slice, 1))
	if err != nil {
		return err
	}
	for i := range 5 {
		if err := w.Write(ctx, sinktest.Rows(100*slice+20*i, 100*slice+20*i+20)); err != nil {
			w.Abort()
			return err
		}
	}
	_, err = w.Commit(ctx)
	return err
}

func TestFanoutSuite(t *testing.T) {
	for n, of := range []string{"first", "second"} {
		t.Run(of, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T, f sinktest.Fixture) sinktest.Target {
				sinks := []*memory.Sink{memorySink(f), memorySink(f)}
				s, ctx := fanned(t, job.RequireAll, 1<<20, sinks...)
				return sinktest.Target{Sink: s, Read: func(t *testing.T) map[string]map[string][]byte {
					if err := s.settle(ctx); err != nil {
						t.Error(err)
					}
					return sinks[n].Rows()
				}}
			})
		})
	}
}

// A cluster that takes nothing does not stop the other while there is room in
// front of it; when there is none, everything waits; and in the end both have all.
func TestSlowClusterDoesNotStopTheOther(t *testing.T) {
	fix := sinktest.NewFixture(t)
	fast, slow := memorySink(fix), memorySink(fix)
	open := make(chan struct{})
	slow.Fail = func(sink.Slice) error { <-open; return nil }
	size := int64(sinktest.Rows(0, 100).Size())
	f, ctx := fanned(t, job.RequireAll, 20*size, fast, slow)
	for i := range 15 { // committed one after the other, while the slow one has none of them
		if err := write(ctx, f, fix, i); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(fast.Rows()); n != 1500 {
		t.Errorf("the fast cluster has %d rows", n)
	}
	if n := len(slow.Rows()); n != 0 {
		t.Errorf("the slow cluster has %d rows", n)
	}
	stuck := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stuck)
		for i := 15; i < 40; i++ {
			if err := write(ctx, f, fix, i); err != nil {
				t.Error(err)
			}
		}
	})
	for f.branches[1].ahead.take(int64(sinktest.Rows(0, 20).Size())) { // it has room for one more batch
		f.branches[1].ahead.gaveBack(int64(sinktest.Rows(0, 20).Size()))
		time.Sleep(time.Millisecond)
	}
	select {
	case <-stuck:
		t.Error("2,500 more rows were taken for the slow cluster, though there is room for 500")
	default:
	}
	close(open)
	wg.Wait()
	if err := f.settle(ctx); err != nil {
		t.Fatal(err)
	}
	if a, b := len(fast.Rows()), len(slow.Rows()); a != 4000 || b != 4000 {
		t.Errorf("%d and %d rows of 4000", a, b)
	}
}

// What one cluster refuses ends the run, or with require: any that cluster's
// part in it; the other has every row. Where both refuse, the run ends.
func TestClusterThatFails(t *testing.T) {
	fix := sinktest.NewFixture(t)
	gone := failure.New(failure.Sink, errors.New("the table is gone"), "")
	for _, tc := range []struct {
		require job.Require
		both    bool
		ok      bool
	}{{job.RequireAny, false, true}, {job.RequireAll, false, false}, {job.RequireAny, true, false}} {
		good, bad := memorySink(fix), memorySink(fix)
		fail := func(s sink.Slice) error {
			if s.Name == "3" {
				return gone
			}
			return nil
		}
		bad.Fail = fail
		if tc.both {
			good.Fail = fail
		}
		f, ctx := fanned(t, tc.require, 1<<20, good, bad)
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			err = write(ctx, f, fix, i)
		}
		if err == nil {
			err = f.settle(ctx)
		}
		if (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
		if cause := context.Cause(ctx); !tc.ok && !errors.Is(cause, gone) {
			t.Errorf("%+v: the run ends for %v", tc, cause)
		}
		if n := len(good.Rows()); tc.ok && n != 1000 {
			t.Errorf("%+v: the good cluster has %d rows of 1000", tc, n)
		}
		v := f.verdicts(err)
		if tc.ok && (v[0].Error != "" || !strings.Contains(v[1].Error, "the table is gone") || v[1].State != string(report.Failed)) {
			t.Errorf("%+v: verdicts %+v", tc, v)
		}
	}
}

// Rows that wait on disk for a slow cluster and cannot be read back end the run,
// however many clusters are enough: the fast one has acknowledged the slice, so that
// nobody sends it again, and the slow one has done nothing wrong.
func TestSpoolThatCannotBeRead(t *testing.T) {
	fix := sinktest.NewFixture(t)
	for _, require := range []job.Require{job.RequireAny, job.RequireAll} {
		fast, slow := memorySink(fix), memorySink(fix)
		open := make(chan struct{})
		slow.Fail = func(sink.Slice) error { <-open; return nil }
		f, ctx := fanned(t, require, 1<<20, fast, slow)
		dir := t.TempDir()
		disk, err := spool.Open(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		f.branches[1].ahead = newReadAhead(1, disk, f.Log, f.Progress)
		for i := range 3 {
			if err := write(ctx, f, fix, i); err != nil {
				t.Fatal(err)
			}
		}
		damage(t, dir)
		close(open)
		if err := f.settle(ctx); failure.ClassOf(err) != failure.Transient || !strings.Contains(err.Error(), "rows on their way to HBase b are lost: ") {
			t.Errorf("require: %s: %v", require, err)
		}
		if f.all[1].err != nil {
			t.Errorf("require: %s: the slow cluster is left out: %v", require, f.all[1].err)
		}
	}
}

// damage overwrites the open files of a directory, though they were removed from it.
func damage(t *testing.T, dir string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, fd := range fds {
		path := filepath.Join("/proc/self/fd", fd.Name())
		if name, err := os.Readlink(path); err != nil || !strings.HasPrefix(name, dir) {
			continue
		}
		if err := os.WriteFile(path, []byte("nothing that was written"), 0o600); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if damaged == 0 {
		t.Fatalf("no file of %s is open", dir)
	}
}
