package scatter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// queryError is an error as package clickhouse gives it.
func queryError(kind clickhouse.Kind, class failure.Class) error {
	return failure.New(class, &clickhouse.QueryError{Node: "n", Kind: kind, Err: errors.New("no")}, "")
}

// A task that hits a limit is replaced by its parts, down to those that fit,
// and each part runs once.
func TestExecutorSplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fits = 3
		var mu sync.Mutex
		done, tried := 0, 0
		e := executor(3, 2)
		e.Split = func(_ context.Context, _, size int, _ error) ([]Task[int], error) {
			return []Task[int]{{Work: size / 2, Weight: 1}, {Work: size - size/2, Node: 1, Weight: 1}}, nil
		}
		err := e.Run(t.Context(), []Task[int]{{Work: 20}, {Work: 2}}, func(_ context.Context, _, size, attempt int) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			tried++
			if attempt != 1 {
				t.Errorf("a part begins with attempt %d", attempt)
			}
			if size > fits {
				return queryError(clickhouse.KindLimit, failure.Source)
			}
			done += size
			return nil
		})
		if err != nil || done != 22 {
			t.Errorf("%d of 22 done: %v", done, err)
		}
		if tried != 16 { // 20, 2×10, 4×5, 8 of 2 or 3, and the 2
			t.Errorf("%d attempts, want 16", tried)
		}
	})
}

func TestExecutorEndsWhenASplitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := executor(2, 1)
		indivisible := failure.Errorf(failure.Source, "a single group")
		e.Split = func(context.Context, int, int, error) ([]Task[int], error) { return nil, indivisible }
		err := e.Run(t.Context(), tasks(3, 2), func(context.Context, int, int, int) error {
			return queryError(clickhouse.KindLimit, failure.Source)
		})
		if !errors.Is(err, indivisible) {
			t.Errorf("%v", err)
		}
	})
}

// A server that has too much to do costs a task none of its attempts; but the
// patience is not without end.
func TestExecutorWaitsForBusyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		busy := func(context.Context, int, int, int) error {
			if time.Since(begin) < 5*time.Minute {
				return queryError(clickhouse.KindLater, failure.Transient)
			}
			return nil
		}
		if err := executor(2, 1).Run(t.Context(), tasks(4, 2), busy); err != nil {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		begin = time.Now()
		err := executor(2, 1).Run(t.Context(), tasks(1, 2), func(context.Context, int, int, int) error {
			return queryError(clickhouse.KindLater, failure.Transient)
		})
		if waited := time.Since(begin); failure.ClassOf(err) != failure.Transient || waited < latePatience || waited > latePatience+time.Minute {
			t.Errorf("gave up after %v: %v", waited, err)
		}
	})
}

// A node that fails again and again rests: it must not use up the attempts of
// every slice that waits, while the others do the work.
func TestExecutorLetsABrokenNodeRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		broken, ran := 0, 0
		err := executor(4, 1).Run(t.Context(), tasks(40, 4), func(_ context.Context, node, _, _ int) error {
			if node == 2 {
				mu.Lock()
				defer mu.Unlock()
				broken++
				return failure.Errorf(failure.Transient, "refused")
			}
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			ran++
			return nil
		})
		if err != nil || ran != 40 {
			t.Fatalf("%d of 40 tasks ran: %v", ran, err)
		}
		if broken > 10 {
			t.Errorf("the broken node was asked %d times", broken)
		}
	})
}

// Having been put off takes nothing from the attempts that may fail.
func TestExecutorWaitingIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := executor(2, 1).Run(t.Context(), tasks(1, 2), func(_ context.Context, _, _, attempt int) error {
			switch {
			case attempt <= 6:
				return queryError(clickhouse.KindLater, failure.Transient)
			case attempt <= 8:
				return failure.Errorf(failure.Transient, "refused")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// What a split asks of a node counts as the task did.
func TestExecutorSplitsWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		atOnce, onNode := 0, map[int]int{}
		busy := func(node int) {
			mu.Lock()
			atOnce++
			onNode[node]++
			if atOnce > 3 || onNode[node] > 1 {
				t.Errorf("%d at once, %d on node %d", atOnce, onNode[node], node)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			atOnce--
			onNode[node]--
		}
		e := executor(4, 1)
		e.Total = 3
		e.Split = func(_ context.Context, node, size int, _ error) ([]Task[int], error) {
			busy(node)
			return []Task[int]{{Work: size / 2}, {Work: size - size/2, Node: 1}}, nil
		}
		err := e.Run(t.Context(), []Task[int]{{Work: 16}, {Work: 16, Node: 1}, {Work: 16, Node: 2}, {Work: 16, Node: 3}}, func(_ context.Context, node, size, _ int) error {
			busy(node)
			if size > 1 {
				return queryError(clickhouse.KindLimit, failure.Source)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
