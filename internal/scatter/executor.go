package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A Task is a piece of work in the hands of an executor.
type Task[T any] struct {
	// Work is what [Do] is called with.
	Work T
	// Node is the node that is first in line.
	Node int
	// Only are the nodes that may run the task; nil means all.
	Only []int
	// Weight orders the tasks: heavy ones start first.
	Weight uint64

	attempts int
	failures int // attempts that failed, without those that were put off
	failedOn map[int]bool
	began    time.Time // of the first attempt that was put off, since the last that was not
}

// An Executor runs tasks on nodes.
type Executor[T any] struct {
	// Nodes is the number of nodes; PerNode bounds the tasks that run on one
	// of them at once, and Total those on all of them; 0 means no more bound.
	Nodes, PerNode, Total int
	// Attempts is how often a task is tried when its errors are transient.
	Attempts int
	// Pause is the wait before a second attempt; it doubles with each more, up
	// to [longestPause]. A node that failed [nodeFailures] times in a row rests as long.
	Pause time.Duration
	// Split, if set, says what to do instead of a task that hit a limit of the
	// mover's own on a node: usually its halves. An error ends the run. What it asks
	// the node counts as the task does against PerNode and Total.
	Split func(ctx context.Context, node int, work T, err error) ([]Task[T], error)
	Log   *slog.Logger
}

const (
	longestPause = 30 * time.Second
	// latePatience is how long a task is put off that the servers have no room for.
	latePatience = 15 * time.Minute
	// quotaPatience is as much where the end of the wait is known: quotas have
	// intervals of an hour as a rule.
	quotaPatience = 65 * time.Minute
	// nodeFailures is the number of failures in a row after which a node rests.
	nodeFailures = 3
)

// Do runs one attempt, numbered from 1, of a task on a node.
type Do[T any] func(ctx context.Context, node int, work T, attempt int) error

// GiveUp marks an error, transient though it may be, that a new attempt of the
// task would not help: whoever returns it has tried again for as long as it
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

// Run runs every task to its success, once. A task that failed with a transient
// error goes to another node after a pause; one that hit a limit is replaced by
// what Split makes of it. The first permanent error, or a transient one that
// outlasted its attempts, ends the run: the tasks under way are cancelled and
// waited for, and the error is returned.
func (e *Executor[T]) Run(ctx context.Context, tasks []Task[T], do Do[T]) error {
	q := newQueue(e.Nodes, cmp.Or(e.Total, e.Nodes*e.PerNode), tasks)
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

func (e *Executor[T]) work(ctx context.Context, q *queue[T], node int, do Do[T]) error {
	for {
		t := q.take(ctx, node)
		if t == nil {
			return context.Cause(ctx)
		}
		t.attempts++
		err := do(ctx, node, t.Work, t.attempts)
		switch {
		case err == nil:
			q.succeeded(node)
		case ctx.Err() != nil:
			return err
		default:
			err = e.again(ctx, q, node, t, err)
		}
		q.ended()
		if err != nil {
			return err
		}
	}
}

// again decides what becomes of a task that failed.
func (e *Executor[T]) again(ctx context.Context, q *queue[T], node int, t *Task[T], err error) error {
	switch {
	case clickhouse.KindOf(err) == clickhouse.KindLimit && e.Split != nil:
		parts, splitErr := e.Split(ctx, node, t.Work, err)
		if splitErr != nil {
			return splitErr
		}
		q.replace(parts)
		return nil
	case !worthARetry(err):
		return err
	case clickhouse.KindOf(err) == clickhouse.KindLater:
		return e.putOff(q, node, t, err)
	}
	t.failures++
	t.began = time.Time{}
	if t.failures >= e.Attempts {
		return fmt.Errorf("gave up after %d attempts: %w", t.failures, err)
	}
	pause := e.pause(t.failures)
	e.Log.Warn("a slice failed and will be tried again", "attempt", t.attempts, "node", node, "pause", pause.String(), "error", err)
	t.failedOn[node] = true
	if rest := q.failed(node, e.pause); rest > 0 {
		e.Log.Warn("a node failed again and again and rests", "node", node, "rest", rest.String())
	}
	time.AfterFunc(pause, func() { q.put(t) })
	return nil
}

// putOff waits for servers that have too much to do, or for the end of a quota's
// interval: that is no failure of the task, and any node may try it again.
func (e *Executor[T]) putOff(q *queue[T], node int, t *Task[T], err error) error {
	if t.began.IsZero() {
		t.began = time.Now()
	}
	pause, patience := e.pause(t.attempts), latePatience
	if interval := clickhouse.RetryAfter(err); interval > 0 {
		pause, patience = max(pause, interval), quotaPatience
	}
	if waited := time.Since(t.began); waited > patience {
		return fmt.Errorf("the servers had no room for %v: %w", waited.Round(time.Second), err)
	}
	e.Log.Info("the server has too much to do, a slice waits", "node", node, "pause", pause.Round(time.Second).String(), "error", err)
	time.AfterFunc(pause, func() { q.put(t) })
	return nil
}

// pause is the wait after n failures.
func (e *Executor[T]) pause(n int) time.Duration {
	d := e.Pause
	for range n - 1 {
		d = min(2*d, longestPause)
	}
	return d
}

// A queue hands out tasks, heaviest first. A node whose own tasks have all been
// taken takes those of others.
type queue[T any] struct {
	mu    sync.Mutex
	cond  *sync.Cond
	nodes []nodeState
	ready []*Task[T]
	left  int // tasks that have not succeeded
	room  int // tasks that may start before one has ended
}

type nodeState struct {
	failures int // in a row
	restsTo  time.Time
}

func newQueue[T any](nodes, total int, tasks []Task[T]) *queue[T] {
	q := &queue[T]{nodes: make([]nodeState, nodes), left: len(tasks), room: total}
	q.cond = sync.NewCond(&q.mu)
	for _, t := range tasks {
		t.failedOn = map[int]bool{}
		q.ready = append(q.ready, &t)
	}
	q.sort()
	return q
}

// sort puts tasks that failed before the others, and heavy ones first.
func (q *queue[T]) sort() {
	slices.SortStableFunc(q.ready, func(a, b *Task[T]) int {
		return cmp.Or(cmp.Compare(min(b.attempts, 1), min(a.attempts, 1)), cmp.Compare(b.Weight, a.Weight))
	})
}

// take waits for a task that the node may run. It returns nil when all tasks
// have succeeded or ctx has ended.
func (q *queue[T]) take(ctx context.Context, node int) *Task[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if ctx.Err() != nil || q.left == 0 {
			return nil
		}
		if q.room > 0 && !time.Now().Before(q.nodes[node].restsTo) {
			if i := q.pick(node); i >= 0 {
				t := q.ready[i]
				q.ready = slices.Delete(q.ready, i, i+1)
				q.room--
				return t
			}
		}
		q.cond.Wait()
	}
}

// may says whether a node may run the task.
func (t *Task[T]) may(node int) bool { return t.Only == nil || slices.Contains(t.Only, node) }

// choice is the number of nodes that may run the task.
func (t *Task[T]) choice(nodes int) int {
	if t.Only != nil {
		return len(t.Only)
	}
	return nodes
}

// pick gives the index of the task that suits the node best, or -1: one that
// failed before, so that what cannot succeed ends the run soon, then the node's
// own, then others'; and none that failed on it while a node is left to try. A
// node that failed last is left to prove itself with tasks that did not fail yet:
// dead nodes have time for everything, and would use up a task's attempts.
func (q *queue[T]) pick(node int) int {
	own, stolen := -1, -1
	for i, t := range q.ready {
		switch {
		case !t.may(node) || t.failedOn[node] && len(t.failedOn) < t.choice(len(q.nodes)):
		case t.attempts > 0:
			if q.nodes[node].failures == 0 || !q.anySound(t) {
				return i
			}
		case t.Node == node && own < 0:
			own = i
		case stolen < 0:
			stolen = i
		}
	}
	if own >= 0 {
		return own
	}
	return stolen
}

// anySound says whether a node that may run the task did not fail last.
func (q *queue[T]) anySound(t *Task[T]) bool {
	for i := range q.nodes {
		if q.nodes[i].failures == 0 && t.may(i) && !t.failedOn[i] {
			return true
		}
	}
	return false
}

// ended gives the room of a task that was taken to the next one.
func (q *queue[T]) ended() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room++
	q.cond.Broadcast()
}

func (q *queue[T]) put(t *Task[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready = append(q.ready, t)
	q.sort()
	q.cond.Broadcast()
}

// replace takes parts in place of a task that was taken.
func (q *queue[T]) replace(parts []Task[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range parts {
		t.failedOn = map[int]bool{}
		q.ready = append(q.ready, &t)
	}
	q.left += len(parts) - 1
	q.sort()
	q.cond.Broadcast()
}

// failed counts a failure of a node and says how long it rests, 0 if it does not.
func (q *queue[T]) failed(node int, pause func(int) time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := &q.nodes[node]
	n.failures++
	q.cond.Broadcast() // what was left to this node may be for others now
	if n.failures < nodeFailures {
		return 0
	}
	rest := pause(n.failures)
	n.restsTo = time.Now().Add(rest)
	time.AfterFunc(rest, q.wake)
	return rest
}

// succeeded must be followed by ended, which wakes those that wait.
func (q *queue[T]) succeeded(node int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nodes[node].failures = 0
	q.left--
}

func (q *queue[T]) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cond.Broadcast()
}
