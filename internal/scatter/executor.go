package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A Task is one slice in the hands of an executor.
type Task struct {
	// Unit and Slice are indexes into the plan.
	Unit, Slice int
	// Node is the node that is first in line.
	Node int
	// Weight orders the tasks: heavy ones start first.
	Weight uint64

	attempts int
	failedOn map[int]bool
}

// Tasks gives the plan's slices as tasks.
func (p *Plan) Tasks() []Task {
	tasks := make([]Task, 0, p.Slices())
	for u := range p.Units {
		for i, s := range p.Units[u].Slices {
			tasks = append(tasks, Task{Unit: u, Slice: i, Node: s.Node, Weight: s.Rows})
		}
	}
	return tasks
}

// An Executor runs tasks on nodes.
type Executor struct {
	// Nodes is the number of nodes; PerNode bounds the tasks that run on one
	// of them at once.
	Nodes, PerNode int
	// Attempts is how often a task is tried when its errors are transient.
	Attempts int
	// Pause is the wait before a second attempt; it doubles with each more.
	Pause time.Duration
	Log   *slog.Logger
}

// Do runs one attempt, numbered from 1, of a task on a node.
type Do func(ctx context.Context, node int, t Task, attempt int) error

// GiveUp marks an error, transient though it may be, that a new attempt of the
// slice would not help: whoever returns it has tried again for as long as it
// makes sense. The class stays; nil stays nil.
func GiveUp(err error) error {
	if err == nil {
		return nil
	}
	return &final{err}
}

type final struct{ error }

func (f *final) Unwrap() error { return f.error }

func worthARetry(err error) bool {
	_, stop := errors.AsType[*final](err)
	return failure.IsTransient(err) && !stop
}

// Run runs every task once to its success. A task that failed with a
// transient error goes to another node after a pause. The first permanent
// error, or a transient one that outlasted its attempts, ends the run: the
// tasks under way are cancelled and waited for, and the error is returned.
func (e *Executor) Run(ctx context.Context, tasks []Task, do Do) error {
	q := newQueue(e.Nodes, tasks)
	g, ctx := errgroup.WithContext(ctx)
	// The queue's waiters hear of the end of the context through the queue.
	defer context.AfterFunc(ctx, q.wake)()
	for node := range e.Nodes {
		for range e.PerNode {
			g.Go(func() error { return e.work(ctx, q, node, do) })
		}
	}
	return g.Wait()
}

func (e *Executor) work(ctx context.Context, q *queue, node int, do Do) error {
	for {
		t := q.take(ctx, node)
		if t == nil {
			return context.Cause(ctx)
		}
		t.attempts++
		err := do(ctx, node, *t, t.attempts)
		if err == nil {
			q.done()
			continue
		}
		if ctx.Err() != nil || !worthARetry(err) {
			return err
		}
		if t.attempts >= e.Attempts {
			return fmt.Errorf("gave up after %d attempts: %w", t.attempts, err)
		}
		pause := time.Duration(float64(e.Pause) * math.Pow(2, float64(t.attempts-1)))
		e.Log.Warn("slice failed, will be tried again", "attempt", t.attempts,
			"node", node, "pause", pause.String(), "error", err)
		t.failedOn[node] = true
		time.AfterFunc(pause, func() { q.put(t) })
	}
}

// A queue hands out tasks. Every node has a queue of its own, heaviest first;
// a node whose queue is empty takes from the others.
type queue struct {
	mu    sync.Mutex
	cond  *sync.Cond
	nodes int
	ready []*Task
	left  int // tasks that have not succeeded
}

func newQueue(nodes int, tasks []Task) *queue {
	q := &queue{nodes: nodes, left: len(tasks)}
	q.cond = sync.NewCond(&q.mu)
	for _, t := range tasks {
		t.failedOn = map[int]bool{}
		q.ready = append(q.ready, &t)
	}
	slices.SortStableFunc(q.ready, func(a, b *Task) int { return cmp.Compare(b.Weight, a.Weight) })
	return q
}

// take waits for a task that the node may run. It returns nil when all tasks
// have succeeded or ctx has ended.
func (q *queue) take(ctx context.Context, node int) *Task {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if ctx.Err() != nil || q.left == 0 {
			return nil
		}
		if i := q.pick(node); i >= 0 {
			t := q.ready[i]
			q.ready = slices.Delete(q.ready, i, i+1)
			return t
		}
		q.cond.Wait()
	}
}

// pick gives the index of the task that suits the node best, or -1: its own
// before others', and none that failed on it while a node is left to try.
func (q *queue) pick(node int) int {
	stolen := -1
	for i, t := range q.ready {
		if t.failedOn[node] && len(t.failedOn) < q.nodes {
			continue
		}
		if t.Node == node {
			return i
		}
		if stolen < 0 {
			stolen = i
		}
	}
	return stolen
}

func (q *queue) put(t *Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready = append(q.ready, t)
	q.cond.Broadcast()
}

func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left--
	if q.left == 0 {
		q.cond.Broadcast()
	}
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cond.Broadcast()
}
