package ledger

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// memory is a store that can be made to fail.
type memory struct {
	mu   sync.Mutex
	rows map[string][]byte
	// fail, if set, is asked before each write: an error with done true is an
	// answer that was lost.
	fail func(key string) (err error, done bool)
}

func newMemory() *memory { return &memory{rows: map[string][]byte{}} }

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.rows[key]), nil
}

func (m *memory) CompareAndPut(_ context.Context, key string, expected, value []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lost error
	if m.fail != nil {
		err, done := m.fail(key)
		if err != nil && !done {
			return false, err
		}
		lost = err
	}
	now, there := m.rows[key]
	switch {
	case there && bytes.Equal(now, value):
		return true, lost
	case there != (expected != nil) || !bytes.Equal(now, expected):
		return false, lost
	}
	m.rows[key] = bytes.Clone(value)
	return true, lost
}

func (m *memory) Scan(_ context.Context, prefix string, fn func(string, []byte) error) error {
	m.mu.Lock()
	rows := maps.Clone(m.rows)
	m.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if strings.HasPrefix(k, prefix) {
			if err := fn(k, rows[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// T never repeats and never goes back, whatever the clock does and however
// many runs ask at once.
func TestTimestampsOnlyGrow(t *testing.T) {
	store := newMemory()
	var mu sync.Mutex
	clock := time.UnixMilli(5_000)
	l := New(store, quiet())
	l.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	next := func(table, run string) int64 {
		ts, err := l.NextTimestamp(t.Context(), table, run)
		if err != nil {
			t.Fatal(err)
		}
		return ts
	}
	if ts := next("a", "r1"); ts != 5000 {
		t.Errorf("the first timestamp is %d, the clock says 5000", ts)
	}
	if ts := next("a", "r2"); ts != 5001 {
		t.Errorf("in the same millisecond: %d, want 5001", ts)
	}
	clock = time.UnixMilli(1_000)
	if ts := next("a", "r3"); ts != 5002 {
		t.Errorf("after the clock jumped back: %d, want 5002", ts)
	}
	if ts := next("b", "r4"); ts != 1000 {
		t.Errorf("another table: %d, want 1000", ts)
	}
	clock = time.UnixMilli(9_000)
	if ts := next("a", "r5"); ts != 9000 {
		t.Errorf("after the clock went on: %d, want 9000", ts)
	}
	var wg sync.WaitGroup
	seen := make(chan int64, 20)
	for i := range 20 {
		wg.Go(func() { seen <- next("a", string(rune('a'+i))) })
	}
	wg.Wait()
	close(seen)
	unique := map[int64]bool{}
	for ts := range seen {
		unique[ts] = true
	}
	if len(unique) != 20 {
		t.Errorf("20 runs at once got %d different timestamps", len(unique))
	}
}

func owner(run string) Owner { return Owner{Run: run, Host: "h", PID: 1} }

func TestLeaseIsExclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(newMemory(), quiet())
		lease, _, err := l.Acquire(t.Context(), "job", "2026-11-29", owner("r1"))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, _, err = l.Acquire(t.Context(), "job", "2026-11-29", owner("r2"))
		if failure.ClassOf(err) != failure.Locked || !strings.Contains(err.Error(), "r1") {
			t.Errorf("the second run got %v (class %d)", err, failure.ClassOf(err))
		}
		if waited := time.Since(begin); waited > 2*beatEvery {
			t.Errorf("it took %v to find out", waited)
		}
		other, _, err := l.Acquire(t.Context(), "job", "2026-11-30", owner("r3"))
		if err != nil {
			t.Errorf("another date: %v", err)
		}
		if err := errors.Join(lease.Release(t.Context()), other.Release(t.Context())); err != nil {
			t.Error(err)
		}
		again, _, err := l.Acquire(t.Context(), "job", "2026-11-29", owner("r4"))
		if err != nil {
			t.Fatalf("after the release: %v", err)
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A holder that was killed loses its lease after its time to live; what it
// left is no obstacle, whatever the clocks of the two machines say.
func TestLeaseOfTheDeadIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		dead, cancel := context.WithCancel(t.Context())
		first := New(store, quiet())
		first.now = func() time.Time { return time.Now().Add(100 * time.Hour) }
		if _, _, err := first.Acquire(dead, "job", "d", owner("r1")); err != nil {
			t.Fatal(err)
		}
		cancel() // no beat any more, no release
		synctest.Wait()
		begin := time.Now()
		lease, _, err := New(store, quiet()).Acquire(t.Context(), "job", "d", owner("r2"))
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited < leaseTTL || waited > leaseTTL+2*watchStep {
			t.Errorf("taken over after %v, the time to live is %v", waited, leaseTTL)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A holder that slept through its time to live learns that it has lost.
func TestLeaseLostEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		l := New(store, quiet())
		lease, ctx, err := l.Acquire(t.Context(), "job", "d", owner("r1"))
		if err != nil {
			t.Fatal(err)
		}
		store.mu.Lock()
		store.rows[key("lease", "job", "d")] = []byte(`{"run":"r2"}`) // somebody took over
		store.mu.Unlock()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrLost) || failure.ClassOf(cause) != failure.Transient {
			t.Errorf("the run ended with %v", cause)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("releasing a lost lease: %v", err)
		}
		if got := string(store.rows[key("lease", "job", "d")]); got != `{"run":"r2"}` {
			t.Errorf("the release touched the other's lease: %s", got)
		}
	})
}

// A holder that was stopped and wakes up does nothing before it knows that the
// lease is still its own.
func TestLeaseOfAStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		lease, ctx, err := New(store, quiet()).Acquire(t.Context(), "job", "d", owner("r1"))
		if err != nil {
			t.Fatal(err)
		}
		if until, err := lease.Sure(ctx); err != nil || until.After(time.Now().Add(leaseTTL)) || until.Before(time.Now().Add(leaseTTL-beatEvery)) {
			t.Errorf("a lease just taken: %v", err)
		}
		lease.sureMu.Lock()
		lease.sure = lease.sure.Add(-time.Minute) // no beat for so long
		lease.sureMu.Unlock()
		store.mu.Lock()
		store.rows[key("lease", "job", "d")] = []byte(`{"run":"r2"}`)
		store.mu.Unlock()
		// The context that asks need not be the lease's.
		if _, err := lease.Sure(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("another process has the lease: %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// A store that is away for a while, or whose answers are lost, costs no lease;
// one that stays away does. Its holder does nothing while another process might
// take over, and goes on when it turns out that none has.
func TestLeaseSurvivesShortTrouble(t *testing.T) {
	for name, done := range map[string]bool{"writes fail": false, "answers are lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemory()
				l := New(store, quiet())
				lease, ctx, err := l.Acquire(t.Context(), "job", "d", owner("r1"))
				if err != nil {
					t.Fatal(err)
				}
				broken := func(on bool) {
					store.mu.Lock()
					defer store.mu.Unlock()
					store.fail = nil
					if on {
						store.fail = func(string) (error, bool) { return errors.New("away"), done }
					}
				}
				broken(true)
				time.Sleep(beatEvery + time.Second)
				broken(false)
				time.Sleep(2 * leaseTTL)
				if ctx.Err() != nil {
					t.Fatalf("the lease was lost: %v", context.Cause(ctx))
				}
				broken(true)
				time.Sleep(sureFor + beatEvery)
				sure := make(chan error, 1)
				go func() {
					until, err := lease.Sure(ctx)
					if err == nil && until.Before(time.Now()) {
						err = errors.New("sure until a time that is over")
					}
					sure <- err
				}()
				time.Sleep(2 * leaseTTL)
				select {
				case err := <-sure:
					t.Errorf("sure of a lease that may be another's: %v", err)
				default:
				}
				broken(false)
				if err := <-sure; err != nil {
					t.Errorf("the store is back and nobody has the lease: %v", err)
				}
				broken(true)
				begin := time.Now()
				time.Sleep(sureFor + beatEvery)
				if _, err := lease.Sure(ctx); !errors.Is(err, ErrLost) {
					t.Errorf("the store stays away: %v", err)
				}
				if held := time.Since(begin); held > giveUpAfter+2*beatTimeout {
					t.Errorf("it took %v to give up", held)
				}
				broken(false)
				_ = lease.Release(t.Context())
			})
		})
	}
}

func TestPointersMoveAndAreListed(t *testing.T) {
	l := New(newMemory(), quiet())
	for _, p := range []Pointer{
		{Job: "a/b", Date: "2026-11-28", Level: "1", Period: "DAY", Run: "old"},
		{Job: "a/b", Date: "2026-11-29", Level: "1", Period: "DAY", Run: "r1"},
		{Job: "a/b", Date: "2026-11-29", Level: "1", Period: "DAY", Run: "r2", Since: 7, Until: 8},
		{Job: "a/b", Date: "2026-11-29", Level: "2|x", Period: "DAY", Run: "r2"},
		{Job: "a", Date: "2026-11-29", Level: "1", Period: "DAY", Run: "other job"},
		{Job: "a/bc", Date: "2026-11-29", Level: "1", Period: "DAY", Run: "other job"},
	} {
		if err := l.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Publish(t.Context(), Pointer{Job: "a/b", Date: "2026-11-29", Level: "1", Period: "DAY", Run: "late", Since: 6, Until: 7}); !errors.Is(err, ErrLost) {
		t.Errorf("a pointer went back to older cells: %v", err)
	}
	list := func(job, date string) string {
		all, err := l.Pointers(t.Context(), job, date)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, p := range all {
			out = append(out, p.Date[8:]+":"+p.Level+":"+p.Run)
		}
		return strings.Join(out, " ")
	}
	if got, want := list("a/b", "2026-11-29"), "29:1:r2 29:2|x:r2"; got != want {
		t.Errorf("pointers of the date: %s, want %s", got, want)
	}
	if got, want := list("a/b", ""), "28:1:old 29:1:r2 29:2|x:r2"; got != want {
		t.Errorf("all pointers: %s, want %s", got, want)
	}
	if got := list("a", ""); got != "29:1:other job" {
		t.Errorf("the pointers of job a: %s", got)
	}
	if got := list("nothing", ""); got != "" {
		t.Errorf("the pointers of no job: %s", got)
	}
}

func TestJobsThatMayWriteTheSameKeysAreFound(t *testing.T) {
	cases := map[string]struct {
		a, b  TableUse
		clash bool
	}{
		"same template":                {TableUse{RowKey: "{k}|{date}"}, TableUse{RowKey: "{k}|{date}"}, true},
		"different literals":           {TableUse{RowKey: "a|{k}|{date}"}, TableUse{RowKey: "b|{k}|{date}"}, false},
		"one literal begins the other": {TableUse{RowKey: "a|{k}"}, TableUse{RowKey: "a|b|{k}"}, true},
		"no literal in one":            {TableUse{RowKey: "a|{k}"}, TableUse{RowKey: "{k}"}, true},
		"after equal salts":            {TableUse{RowKey: "{salt}a|{k}", SaltDigits: 2}, TableUse{RowKey: "{salt}b|{k}", SaltDigits: 2}, false},
		"after other salts":            {TableUse{RowKey: "{salt}a|{k}", SaltDigits: 1}, TableUse{RowKey: "{salt}b|{k}", SaltDigits: 2}, true},
		"salt in one":                  {TableUse{RowKey: "{salt}a|{k}", SaltDigits: 1}, TableUse{RowKey: "b|{k}"}, true},
		"an escape first":              {TableUse{RowKey: `\x61|{k}`}, TableUse{RowKey: "a|{k}"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := New(newMemory(), quiet())
			tc.a.Job, tc.b.Job = "a", "b"
			if others, err := l.UseTable(t.Context(), "t", tc.a); err != nil || len(others) > 0 {
				t.Fatalf("the first job: %v, %v", others, err)
			}
			others, err := l.UseTable(t.Context(), "t", tc.b)
			if err != nil || (len(others) > 0) != tc.clash {
				t.Errorf("%v, %v; want a clash: %v", others, err, tc.clash)
			}
			if others, err := l.UseTable(t.Context(), "other", tc.b); err != nil || len(others) > 0 {
				t.Errorf("another table: %v, %v", others, err)
			}
		})
	}
}

func TestTheLastPlanIsKept(t *testing.T) {
	l := New(newMemory(), quiet())
	var got []string
	if run, err := l.Plan(t.Context(), "j", "2026-11-29", &got); err != nil || run != "" {
		t.Fatalf("run %q, %v where there is none", run, err)
	}
	for run, plan := range map[string][]string{"r1": {"a"}, "r2": {"a", strings.Repeat("SELECT 1 ", 10_000)}} {
		if err := l.SavePlan(t.Context(), "j", "2026-11-29", run, "hash", plan); err != nil {
			t.Fatal(err)
		}
		if name, err := l.Plan(t.Context(), "j", "2026-11-29", &got); err != nil || name != run || !slices.Equal(got, plan) {
			t.Errorf("run %q, %v, %d slices", name, err, len(got))
		}
	}
	if run, err := l.Plan(t.Context(), "j", "2026-11-28", &got); err != nil || run != "" {
		t.Errorf("run %q, %v of another date", run, err)
	}
}
