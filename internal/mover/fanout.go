package mover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/failure"
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
	told   tally // by tally, last
}

// A branch is the way to one cluster.
type branch struct {
	target *target
	sink   roundSink
	ahead  *readAhead
	ctx    context.Context // ends with the lease, and when the cluster is left out
	cancel context.CancelCauseFunc
	// places are as many as slices are gathered at once: a cluster that is behind
	// has no more writers, with a batch each, than one that is not. One of those
	// being gathered always has a place or gets that of one that is finished.
	places  chan struct{}
	pending sync.WaitGroup // legs that were not given up
}

// newBranch makes the way to a cluster, for as long as its lease is held: a request
// that waits for a sign of the lease (see [ledger.Lease.Sure]) waits until it is lost.
func (d *clusters) newBranch(t *target, s roundSink, places int) *branch {
	b := &branch{target: t, sink: s, places: make(chan struct{}, places)}
	b.ctx, b.cancel = context.WithCancelCause(t.leased)
	d.mu.Lock()
	defer d.mu.Unlock()
	t.drop = b.cancel
	if t.err != nil {
		b.cancel(t.err)
	}
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
	// lostRows says that err is that of the queue in front of the cluster, not the cluster's.
	lostRows bool
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
	switch {
	case l.err == nil, errors.Is(context.Cause(l.ctx), errGivenUp), l.branch.ctx.Err() != nil:
	case l.lostRows:
		// The slice may be done for the executor, which then has no rows to send
		// again; and a cluster is not left out for what is wrong here.
		f.end(failure.New(failure.Transient, fmt.Errorf("rows on their way to HBase %s are lost: %w", l.target.name, l.err), failure.Remedy(l.err)))
	default:
		_ = f.out(l.target, l.err) // which ends the run if need be
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
		switch {
		case err != nil:
			l.lostRows = true
		case !more:
			return w.Commit(l.ctx)
		default:
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
		b.pending.Wait() // each leg ends with the cluster's lease, and that with the run
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, b := range f.branches {
		if b.ctx.Err() == nil {
			continue
		}
		// It is not whole, be it that nobody has said so yet.
		if err := f.out(b.target, context.Cause(b.ctx)); err != nil {
			return err
		}
	}
	return nil
}

// tally says what every cluster that is left has acknowledged, so that a row
// counts once, and the retries in all of them. It never goes back.
func (f *fanout) tally() tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	live := f.live()
	var least *tally
	now := tally{rows: f.told.rows, cells: f.told.cells, bytes: f.told.bytes}
	for _, b := range f.branches {
		one := b.sink.tally()
		now.retries += one.retries
		now.pushbacks += one.pushbacks
		if one.pace > 0 && (now.pace == 0 || one.pace < now.pace) {
			now.pace = one.pace
		}
		switch {
		case !slices.Contains(live, b.target):
		case least == nil:
			least = &one
		default:
			least.rows, least.cells, least.bytes = min(least.rows, one.rows), min(least.cells, one.cells), min(least.bytes, one.bytes)
		}
	}
	if least != nil {
		now.rows, now.cells, now.bytes = max(now.rows, least.rows), max(now.cells, least.cells), max(now.bytes, least.bytes)
	}
	f.told = now
	return now
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
