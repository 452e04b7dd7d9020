package mover

import (
	"context"
	"errors"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// A fanout is the sink of several clusters. Each has a queue of its own, in memory
// and then in the spool, and a slice is done for the executor when one cluster has
// acknowledged it: the others finish it from their queues, so that a slow one
// stops the rest only when there is no room for its rows any more. What they owe
// is waited for by settle, before anything is counted.
type fanout struct {
	*clusters
	branches []*branch

	mu     sync.Mutex
	closed bool
}

// A branch is the way to one cluster.
type branch struct {
	target *target
	sink   roundSink
	ahead  *readAhead
	ctx    context.Context // ends when the cluster is left out
	cancel context.CancelCauseFunc
	// places are as many as slices are gathered at once: a cluster that is behind
	// has no more writers, with a batch each, than one that is not. One of those
	// being gathered always has a place or gets that of one that is finished.
	places  chan struct{}
	pending sync.WaitGroup // legs that were not given up
}

func newBranch(ctx context.Context, t *target, s roundSink, places int) *branch {
	b := &branch{target: t, sink: s, places: make(chan struct{}, places)}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	return b
}

// A leg carries one attempt of a slice to one cluster.
type leg struct {
	*branch
	lane   *lane
	ctx    context.Context
	cancel context.CancelCauseFunc
	using  sync.Mutex    // held while rows are put into the lane, and when it is closed
	ended  chan struct{} // closed when ack and err are there
	ack    sink.Ack
	err    error
}

var errGivenUp = errors.New("the attempt was given up")

func (f *fanout) Writer(_ context.Context, s sink.Slice) (sink.Writer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.New("the sink of several clusters is closed")
	}
	w := &fanWriter{fanout: f}
	for _, b := range f.branches {
		if b.ctx.Err() != nil {
			continue
		}
		l := &leg{branch: b, lane: b.ahead.lane(), ended: make(chan struct{})}
		l.ctx, l.cancel = context.WithCancelCause(b.ctx)
		w.legs = append(w.legs, l)
		b.pending.Go(func() { f.carry(l, s) })
	}
	return w, nil
}

// carry writes what comes through a leg's lane, and commits it at the lane's end.
func (f *fanout) carry(l *leg, s sink.Slice) {
	defer close(l.ended)
	l.ack, l.err = l.write(s)
	if l.err != nil && !errors.Is(context.Cause(l.ctx), errGivenUp) && l.branch.ctx.Err() == nil {
		_ = f.out(l.target, l.err) // which ends the run if need be
		l.branch.cancel(l.err)
	}
	l.cancel(errGivenUp)
	l.using.Lock()
	defer l.using.Unlock()
	l.lane.close()
}

func (l *leg) write(s sink.Slice) (sink.Ack, error) {
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-l.ctx.Done():
		return sink.Ack{}, context.Cause(l.ctx)
	}
	w, err := l.sink.Writer(l.ctx, s)
	if err != nil {
		return sink.Ack{}, err
	}
	for {
		b, more, err := l.lane.next(l.ctx)
		if err == nil && !more {
			return w.Commit(l.ctx)
		}
		if err == nil {
			err = w.Write(l.ctx, b.Batch)
			l.lane.release(b)
		}
		if err != nil {
			w.Abort()
			return sink.Ack{}, err
		}
	}
}

// settle waits until every cluster that is left has acknowledged every slice.
func (f *fanout) settle(ctx context.Context) error {
	for _, b := range f.branches {
		b.pending.Wait() // each leg ends with the run's context
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (f *fanout) tally() tally {
	var all tally
	for _, b := range f.branches {
		one := b.sink.tally()
		all.rows += one.rows
		all.cells += one.cells
		all.bytes += one.bytes
		all.retries += one.retries
		all.pushbacks += one.pushbacks
		if one.pace > 0 && (all.pace == 0 || one.pace < all.pace) {
			all.pace = one.pace
		}
	}
	return all
}

func (f *fanout) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	var errs []error
	for _, b := range f.branches {
		b.cancel(errGivenUp)
		b.pending.Wait()
		errs = append(errs, b.sink.Close())
	}
	return errors.Join(errs...)
}

// A fanWriter takes one attempt of a slice for all clusters.
type fanWriter struct {
	*fanout
	legs  []*leg
	ended bool
}

func (w *fanWriter) Write(ctx context.Context, rows *row.Batch) error {
	if w.ended {
		return errors.New("a write after the writer's end")
	}
	for _, l := range w.legs {
		if err := l.put(ctx, rows); err != nil {
			return err
		}
	}
	return w.anyLeft(ctx)
}

// put copies the rows for one cluster. That the cluster was left out is no error here.
func (l *leg) put(ctx context.Context, rows *row.Batch) error {
	l.using.Lock()
	defer l.using.Unlock()
	if l.ctx.Err() != nil {
		return nil
	}
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	b := l.ahead.batch(rows.Width)
	b.Values = append(b.Values, rows.Values...) // texts and big numbers are never changed
	if err := l.lane.put(both, b); err != nil && l.ctx.Err() == nil {
		return err
	}
	return nil
}

// anyLeft is an error if no cluster takes rows any more.
func (w *fanWriter) anyLeft(ctx context.Context) error {
	if ctx.Err() != nil {
		return interruptedBy(ctx)
	}
	for _, l := range w.legs {
		if l.ctx.Err() == nil {
			return nil
		}
	}
	return w.lost()
}

// lost is why the last cluster was left out.
func (w *fanWriter) lost() error {
	for _, l := range w.legs {
		if err := context.Cause(l.branch.ctx); err != nil {
			return err
		}
	}
	return errors.New("there is no cluster to write to")
}

// Commit returns when the first cluster has acknowledged the slice.
func (w *fanWriter) Commit(ctx context.Context) (sink.Ack, error) {
	if w.ended {
		return sink.Ack{}, errors.New("the writer has ended")
	}
	w.ended = true
	done := make(chan *leg, len(w.legs))
	for _, l := range w.legs {
		l.lane.end()
		go func() {
			<-l.ended
			done <- l
		}()
	}
	for range w.legs {
		select {
		case l := <-done:
			if l.err == nil {
				return l.ack, nil
			}
		case <-ctx.Done():
			w.giveUp()
			return sink.Ack{}, interruptedBy(ctx)
		}
	}
	if ctx.Err() != nil {
		return sink.Ack{}, interruptedBy(ctx)
	}
	return sink.Ack{}, w.lost()
}

func (w *fanWriter) Abort() {
	if !w.ended {
		w.ended = true
		w.giveUp()
	}
}

// giveUp ends all legs and waits for them.
func (w *fanWriter) giveUp() {
	for _, l := range w.legs {
		l.cancel(errGivenUp)
	}
	for _, l := range w.legs {
		<-l.ended
	}
}
