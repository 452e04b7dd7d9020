package sink_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// batch has rows of 100 bytes and two cells each.
type batch struct{ rows, pending int }

func newBatch(rows int) *batch { return &batch{rows, rows} }

func (b *batch) Rows() int64      { return int64(b.rows) }
func (b *batch) Cells() int64     { return 2 * int64(b.rows) }
func (b *batch) Bytes() int64     { return 90 * int64(b.rows) }
func (b *batch) Pending() int     { return b.pending }
func (b *batch) PendingSize() int { return 100 * b.pending }

// receiver is the innermost sender: what it does with each attempt.
type receiver func(ctx context.Context, b *batch) error

func (r receiver) Send(ctx context.Context, b *batch) error { return r(ctx, b) }

// takes acknowledges everything.
var takes receiver = func(_ context.Context, b *batch) error {
	b.pending = 0
	return nil
}

var (
	errBusy  = failure.New(failure.Transient, errors.New("busy"), "wait")
	errWrong = failure.New(failure.Sink, errors.New("no such family"), "make one")
)

// refuses acknowledges nothing, ever.
var refuses receiver = func(context.Context, *batch) error { return errBusy }

func newRetry(next sink.Sender[*batch]) *sink.Retry[*batch] {
	return &sink.Retry[*batch]{Next: next, Receiver: "table t", Patience: 2 * time.Minute, Log: slog.New(slog.DiscardHandler)}
}

// TestRetryUntilAcknowledged: rows that come through a few at a time are sent
// until there are none, and counted once.
func TestRetryUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := []int{}
		meter := &sink.Meter[*batch]{Next: receiver(func(_ context.Context, b *batch) error {
			attempts = append(attempts, b.pending)
			if len(attempts) <= 2 {
				return errBusy
			}
			if b.pending = max(0, b.pending-40); b.pending > 0 {
				return errBusy
			}
			return nil
		})}
		var log bytes.Buffer
		r := newRetry(meter)
		r.Log = slog.New(slog.NewTextHandler(&log, nil)).With("table", "t")
		if err := r.Send(t.Context(), newBatch(100)); err != nil {
			t.Fatal(err)
		}
		want := []int{100, 100, 100, 60, 20}
		if !slices.Equal(attempts, want) {
			t.Errorf("attempts with %v rows, want %v", attempts, want)
		}
		if got, want := meter.Read(), (sink.Readings{Rows: 100, Cells: 200, Bytes: 9000, Batches: 1, Retries: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		for _, line := range []string{"table=t attempt=1 rows=100 pending=100", "table=t attempt=4 rows=100 pending=20"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no %q in the log:\n%s", line, &log)
			}
		}
	})
}

// TestMeterInFlight: a batch is in flight while it is sent, not while it rests
// between two attempts.
func TestMeterInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var meter *sink.Meter[*batch]
		tries := 0
		meter = &sink.Meter[*batch]{Next: receiver(func(ctx context.Context, b *batch) error {
			if n := meter.Read().InFlight; n != 1 {
				t.Errorf("%d in flight during the attempt", n)
			}
			if tries++; tries == 1 {
				return errBusy
			}
			return takes(ctx, b)
		})}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := newRetry(meter).Send(t.Context(), newBatch(1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if got, want := meter.Read(), (sink.Readings{}); got != want {
			t.Errorf("between the attempts: %+v", got)
		}
		wg.Wait()
	})
}

// TestRetryEnds with its patience, a permanent error, and the context.
func TestRetryEnds(t *testing.T) {
	stopped := errors.New("stopped by the user")
	for name, tc := range map[string]struct {
		next        receiver
		stop        time.Duration
		least, most time.Duration
		want        []string
		is          error
		class       failure.Class
	}{
		// The last attempt may come a longest pause, with its jitter, later.
		"patience": {next: refuses, least: 2 * time.Minute, most: 2*time.Minute + 8*time.Second, is: errBusy, class: failure.Transient,
			want: []string{"10 of 10 rows of a batch for table t were not acknowledged, and no row for 2m0s, ", " attempts: busy"}},
		"permanent": {next: func(context.Context, *batch) error { return errWrong }, is: errWrong, class: failure.Sink, want: []string{"no such family"}},
		"context in a pause": {next: refuses, stop: 10 * time.Second, least: 10 * time.Second, most: 10 * time.Second, is: stopped,
			class: failure.ClassOf(stopped), want: []string{"write to table t: stopped by the user"}},
		"context in an attempt": {stop: 3 * time.Second, least: 3 * time.Second, most: 3 * time.Second, is: stopped, class: failure.ClassOf(stopped),
			want: []string{"write to table t: stopped by the user"}, next: func(ctx context.Context, _ *batch) error {
				<-ctx.Done()
				return errBusy
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.stop > 0 {
					defer time.AfterFunc(tc.stop, func() { cancel(stopped) }).Stop()
				}
				begin := time.Now()
				err := newRetry(tc.next).Send(ctx, newBatch(10))
				if took := time.Since(begin); took < tc.least || took > tc.most {
					t.Errorf("it took %v", took)
				}
				if !errors.Is(err, tc.is) || failure.ClassOf(err) != tc.class {
					t.Fatalf("class %d: %v", failure.ClassOf(err), err)
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is not in: %v", want, err)
					}
				}
				if tc.class != failure.ClassOf(stopped) && failure.Remedy(err) != failure.Remedy(tc.is) {
					t.Errorf("remedy %q", failure.Remedy(err))
				}
			})
		})
	}
}

// TestRetryLonely: a batch that gets no further has more patience while others
// do, but not without end.
func TestRetryLonely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRetry(receiver(func(ctx context.Context, b *batch) error {
			if b.rows == 1 {
				return errBusy
			}
			return takes(ctx, b)
		}))
		var wg sync.WaitGroup
		wg.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(time.Second) {
				if err := r.Send(t.Context(), newBatch(2)); err != nil {
					t.Error(err)
				}
			}
		})
		begin := time.Now()
		err := r.Send(t.Context(), newBatch(1))
		took := time.Since(begin)
		cancel()
		wg.Wait()
		if !failure.IsTransient(err) || took < 10*time.Minute || took > 10*time.Minute+8*time.Second {
			t.Errorf("%v after %v, want 5 times the patience", err, took)
		}
	})
}

// TestRetryLooks when a batch gets no further, not earlier and not all the time.
func TestRetryLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetry(refuses)
		begin := time.Now()
		looks := []time.Duration{}
		disabled := errors.New("disabled")
		r.Look = func(context.Context) error {
			if looks = append(looks, time.Since(begin)); len(looks) == 4 {
				return disabled
			}
			return nil
		}
		if err := r.Send(t.Context(), newBatch(1)); !errors.Is(err, disabled) {
			t.Errorf("%v", err)
		}
		last := time.Duration(0)
		for _, at := range looks {
			if at-last <= sink.Suspicion {
				t.Errorf("looks after %v", looks)
			}
			last = at
		}
	})
}

// TestExcused: what an attempt waits for elsewhere uses up no patience and
// raises no suspicion; requests that wait side by side are excused once.
func TestExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		r := newRetry(receiver(func(ctx context.Context, _ *batch) error {
			attempts++
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					wait := time.Duration(10-i) * time.Minute // each longer than the patience
					time.Sleep(wait)
					sink.Excuse(ctx, wait)
				})
			}
			wg.Wait()
			time.Sleep(time.Second) // that the receiver had
			return errBusy
		}))
		looks := 0
		r.Look = func(context.Context) error { looks++; return nil }
		begin := time.Now()
		err := r.Send(t.Context(), newBatch(1))
		// Two minutes for attempts of one second and pauses of at most 7.5.
		elsewhere := time.Duration(attempts) * 10 * time.Minute
		if had := time.Since(begin) - elsewhere; !failure.IsTransient(err) || had < 2*time.Minute || had > 2*time.Minute+9*time.Second {
			t.Errorf("given up when the receiver had had %v: %v", had, err)
		}
		if looks == 0 || looks >= attempts-1 {
			t.Errorf("%d looks, %d attempts", looks, attempts)
		}
	})
}
