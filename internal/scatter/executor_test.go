package scatter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

func executor(nodes, perNode int) *Executor[int] {
	return &Executor[int]{Nodes: nodes, PerNode: perNode, Attempts: 3, Pause: time.Second, Log: slog.New(slog.DiscardHandler)}
}

func tasks(n, nodes int) []Task[int] {
	var all []Task[int]
	for i := range n {
		all = append(all, Task[int]{Work: i, Node: i % nodes, Weight: uint64(n - i)})
	}
	return all
}

// Every task runs to one success, never more than PerNode at once on a node,
// and idle nodes take over the work of a slow one.
func TestExecutorRunsEverythingWithinBounds(t *testing.T) {
	for _, perNode := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			const nodes, n = 4, 40
			var mu sync.Mutex
			running, ranOn, success := map[int]int{}, map[int]int{}, map[int]int{}
			err := executor(nodes, perNode).Run(t.Context(), tasks(n, nodes), func(ctx context.Context, node int, task int, attempt int) error {
				mu.Lock()
				running[node]++
				if running[node] > perNode {
					t.Errorf("%d tasks at once on node %d", running[node], node)
				}
				mu.Unlock()
				pause := time.Second
				if node == 0 {
					pause = 20 * time.Second
				}
				time.Sleep(pause)
				mu.Lock()
				defer mu.Unlock()
				running[node]--
				ranOn[node]++
				success[task]++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if success[i] != 1 {
					t.Errorf("task %d succeeded %d times", i, success[i])
				}
			}
			if ranOn[0] >= ranOn[1] {
				t.Errorf("the slow node ran %d tasks, a fast one %d", ranOn[0], ranOn[1])
			}
		})
	}
}

func TestExecutorRetriesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var nodes []int
		begin := time.Now()
		err := executor(3, 1).Run(t.Context(), tasks(1, 3), func(ctx context.Context, node int, task int, attempt int) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, node)
			if attempt != len(nodes) {
				t.Errorf("attempt %d is numbered %d", len(nodes), attempt)
			}
			if attempt < 3 {
				return failure.Errorf(failure.Transient, "node %d is down", node)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes) != 3 || nodes[0] == nodes[1] || nodes[1] == nodes[2] || nodes[0] == nodes[2] {
			t.Errorf("the attempts ran on nodes %v, want three different ones", nodes)
		}
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("waited %v between the attempts, want 1 s and 2 s", waited)
		}
	})
}

func TestExecutorGivesUp(t *testing.T) {
	cases := map[string]struct {
		err      error
		attempts int
		class    failure.Class
	}{
		"transient":    {failure.Errorf(failure.Transient, "down"), 3, failure.Transient},
		"tried enough": {GiveUp(failure.Errorf(failure.Transient, "no acknowledgement")), 1, failure.Transient},
		"permanent":    {failure.Errorf(failure.Source, "no such column"), 1, failure.Source},
		"unclassified": {errors.New("a bug"), 1, failure.Bug},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, cancelled := 0, 0
				var mu sync.Mutex
				err := executor(2, 2).Run(t.Context(), tasks(2, 2), func(ctx context.Context, node int, task int, attempt int) error {
					if task == 1 { // a long one, under way while the other fails
						<-ctx.Done()
						mu.Lock()
						defer mu.Unlock()
						cancelled++
						return context.Cause(ctx)
					}
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					attempts++
					return fmt.Errorf("slice: %w", tc.err)
				})
				if failure.ClassOf(err) != tc.class || !errors.Is(err, tc.err) {
					t.Errorf("class %d, error %v", failure.ClassOf(err), err)
				}
				if attempts != tc.attempts || cancelled != 1 {
					t.Errorf("%d attempts, %d cancelled, want %d and 1", attempts, cancelled, tc.attempts)
				}
			})
		})
	}
}

// The end of the context ends the run even while every worker waits.
func TestExecutorEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- executor(3, 2).Run(ctx, tasks(1, 3), func(ctx context.Context, node int, task int, attempt int) error {
				<-ctx.Done()
				return failure.New(failure.Transient, context.Cause(ctx), "")
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-done; failure.ClassOf(err) != failure.Transient {
			t.Errorf("class %d, error %v", failure.ClassOf(err), err)
		}
	})
}

// What fails everywhere ends the run soon, however many tasks there are, and
// also where a task may run on one node alone.
func TestExecutorGivesUpSoon(t *testing.T) {
	for name, only := range map[string]func(i int) []int{
		"any node":      func(int) []int { return nil },
		"one node each": func(i int) []int { return []int{i % 3} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := tasks(60, 3)
				for i := range all {
					all[i].Only = only(i)
				}
				begin := time.Now()
				e := executor(3, 1)
				e.Attempts = 4
				err := e.Run(t.Context(), all, func(context.Context, int, int, int) error {
					time.Sleep(time.Second)
					return failure.Errorf(failure.Transient, "a shard is gone")
				})
				if failure.ClassOf(err) != failure.Transient {
					t.Errorf("class %d, %v", failure.ClassOf(err), err)
				}
				if took := time.Since(begin); took > 45*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A task that only some nodes may run waits for them, and no more tasks run at
// once than allowed in all.
func TestExecutorKeepsToItsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := tasks(30, 5)
		for i := range all {
			all[i].Only = []int{i % 5, (i + 1) % 5}
		}
		var mu sync.Mutex
		running := 0
		e := executor(5, 2)
		e.Total = 3
		err := e.Run(t.Context(), all, func(_ context.Context, node int, task int, attempt int) error {
			mu.Lock()
			running++
			if running > 3 {
				t.Errorf("%d tasks at once", running)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			if node != task%5 && node != (task+1)%5 {
				t.Errorf("task %d ran on node %d", task, node)
			}
			if task%7 == 0 && attempt == 1 {
				return failure.Errorf(failure.Transient, "once")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
