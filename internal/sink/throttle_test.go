package sink_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// hurry sends batches of 500 rows for some seconds by four goroutines, and gives
// the rows a second that came through; alone they would be 200,000.
func hurry(t *testing.T, s sink.Sender[*batch], seconds int) float64 {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	rows := 0
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(end) {
				if err := s.Send(t.Context(), newBatch(500)); err != nil {
					t.Error(err)
				}
				if time.Now().Before(end) {
					mu.Lock()
					rows += 500
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return float64(rows) / float64(seconds)
}

// slowly takes everything, in 10 ms.
var slowly receiver = func(ctx context.Context, b *batch) error {
	time.Sleep(10 * time.Millisecond)
	return takes(ctx, b)
}

// TestThrottle: the rate holds, in rows and in bytes, and can be changed.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink.NewThrottle(slowly, job.Rate{Rows: 2_000})
		if rate := hurry(t, s, 20); rate < 1_900 || rate > 2_100 {
			t.Errorf("%.0f rows/s of 2000", rate)
		}
		s.SetRate(job.Rate{Rows: 1e6, Bytes: 1_000_000}) // 100 bytes a row
		if rate := hurry(t, s, 20); rate < 9_500 || rate > 10_500 {
			t.Errorf("%.0f rows/s of 10000", rate)
		}
		s.SetRate(job.Rate{})
		if rate := hurry(t, s, 5); rate < 190_000 {
			t.Errorf("%.0f rows/s without a rate", rate)
		}
		s.SetRate(job.Rate{Rows: 2_000})
		if rate := hurry(t, s, 20); rate < 1_900 || rate > 2_100 {
			t.Errorf("%.0f rows/s of 2000, after none", rate)
		}
	})
}

// TestThrottleTakesWhatIsPending: rows that were acknowledged do not count again.
func TestThrottleTakesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sink.NewThrottle(takes, job.Rate{Rows: 100})
		begin := time.Now()
		for range 11 { // the first passes at once
			if err := s.Send(t.Context(), &batch{rows: 100_000, pending: 100}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("1000 rows took %v at 100 a second", took)
		}
	})
}

// TestThrottleChanged: requests that wait hear of a new rate at once, go in the
// order in which they came, and end with their context.
func TestThrottleChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		order := []int{}
		through := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(order)
		}
		s := sink.NewThrottle(receiver(func(ctx context.Context, b *batch) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, b.rows)
			return takes(ctx, b)
		}), job.Rate{Rows: 1})
		var wg sync.WaitGroup
		send := func(ctx context.Context, rows int, want error) {
			wg.Go(func() {
				if err := s.Send(ctx, newBatch(rows)); !errors.Is(err, want) {
					t.Errorf("batch of %d rows: %v, want %v", rows, err, want)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		begin := time.Now()
		send(t.Context(), 1000, nil) // passes, and is paid for by the others
		send(t.Context(), 1001, nil)
		send(ctx, 5, stopped)
		send(t.Context(), 1002, nil)
		cancel(stopped)
		synctest.Wait()
		if got := through(); len(got) != 1 {
			t.Errorf("%v came through at once", got)
		}
		time.Sleep(10 * time.Second)
		s.SetRate(job.Rate{Rows: 990}) // pays the rest of the debt in a second
		synctest.Wait()
		if got := through(); len(got) != 1 {
			t.Errorf("%v came through with the debt", got)
		}
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		if got := through(); len(got) != 2 {
			t.Errorf("%v came through after the first debt", got)
		}
		s.SetRate(job.Rate{})
		synctest.Wait()
		if got := through(); !slices.Equal(got, []int{1000, 1001, 1002}) {
			t.Errorf("%v came through without a rate", got)
		}
		wg.Wait()
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestThrottleIsNoImpatience: a batch that waits for its turn for longer than
// the patience, and then fails once, is sent again.
func TestThrottleIsNoImpatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[int]int{}
		var mu sync.Mutex
		r := newRetry(sink.NewThrottle(receiver(func(ctx context.Context, b *batch) error {
			mu.Lock()
			defer mu.Unlock()
			if tries[b.rows]++; tries[b.rows] <= 3 && b.rows == 60 {
				return errBusy
			}
			return takes(ctx, b)
		}), job.Rate{Rows: 1}))
		r.Look = func(context.Context) error { return errors.New("the throttle raised suspicion") }
		if err := r.Send(t.Context(), newBatch(1000)); err != nil {
			t.Fatal(err)
		}
		// It waits for 1000 s, and for its own 60 rows each time after that.
		begin := time.Now()
		if err := r.Send(t.Context(), newBatch(60)); err != nil || tries[60] != 4 {
			t.Errorf("%d attempts: %v", tries[60], err)
		}
		if took := time.Since(begin); took < 1170*time.Second || took > 1190*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
