package mover

import (
	"context"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/spool"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

const (
	// sliceAttempts is how often a slice is tried when it fails for a reason
	// that may pass, and slicePause the wait before the second try.
	sliceAttempts = 4
	slicePause    = time.Second
	// watchEvery is how often the sink's counters are looked at.
	watchEvery = 250 * time.Millisecond
)

// A run is one execution of a job for a date.
type run struct {
	*Mover
	id      string
	started time.Time

	src   *source
	dest  destination
	spool *spool.Spool // nil: rows do not wait on disk
	plan  *scatter.Plan
	units []unitState // as in the plan
	rows  int64       // acknowledged in all rounds
	drift drift
}

// A unitState is how far a unit of the plan has come.
type unitState struct {
	moved   *sliceCount   // nil before anything was moved
	count   *verify.Count // nil before it was counted
	changed bool          // the source changed meanwhile
}

// Run runs the job: it returns nil only if every row is in HBase, both sides
// were counted and agree, and readers have been pointed to them. The result is
// there in any case and says how far the run came.
func (m *Mover) Run(ctx context.Context) (*report.Result, error) {
	r := &run{Mover: m, started: time.Now()}
	r.id = newRunID(r.started)
	r.dest = m.destination(r.id, r.started)
	return r.run(ctx)
}

func (r *run) run(ctx context.Context) (*report.Result, error) {
	err := r.phases(ctx)
	r.close()
	r.Progress.End()
	if err != nil && ctx.Err() != nil {
		err = failure.New(failure.Transient, err, "run the same command again")
	}
	return r.result(err), err
}

func (r *run) close() {
	if r.src != nil {
		r.src.Close()
	}
	r.dest.close()
}

func (r *run) phases(ctx context.Context) error {
	r.Progress.Begin(report.Preflight)
	if err := r.preflight(ctx); err != nil {
		return err
	}
	leased, err := r.dest.enter(ctx)
	if err != nil {
		return err
	}
	err = r.gather(leased)
	if err == nil {
		r.Progress.Begin(report.Publish)
		err = r.dest.publish(leased, r.plan, func(i int) uint64 { return r.units[i].count.Keys })
	}
	if cause := context.Cause(leased); err != nil && cause != nil && ctx.Err() == nil {
		err = cause // why the run was ended from there: a lost lease, for example
	}
	if err == nil && !r.DryRun {
		r.Progress.Succeeded(time.Now().UTC())
	}
	r.dest.leave(ctx, r.rows, err)
	return err
}

// preflight opens both sides and checks all that can be checked before
// anything is written.
func (r *run) preflight(ctx context.Context) error {
	var err error
	if r.src, err = r.openSource(ctx, r.id); err != nil {
		return err
	}
	r.src.warn(r.Log)
	if err := r.dest.open(ctx, r.src); err != nil {
		return err
	}
	if err := r.watchSource(ctx); err != nil {
		return err
	}
	if !r.DryRun {
		r.spool, err = r.openSpool()
	}
	if several, ok := r.dest.(*clusters); ok {
		several.spool = r.spool
	}
	return err
}

// scatter moves all slices of a round.
func (r *run) scatter(ctx context.Context, p *part) error {
	s, err := r.dest.begin(ctx, p)
	if err != nil {
		return err
	}
	defer s.Close()
	defer r.watch(s)()
	tasks := p.plan.Tasks()
	r.Progress.PlanSlices(len(tasks))
	r.Progress.Estimate(int64(scanned(&p.plan)), int64(p.plan.Groups()))
	g := newGatherer(r.Mover, r.id, r.src.client.Nodes(), &p.plan, s, newReadAhead(queueBytes, r.spool, r.Log, r.Progress))
	err = g.move(ctx, tasks)
	if err == nil && s.settle != nil {
		err = s.settle(ctx)
	}
	for k, i := range p.units {
		r.units[i].moved = &g.counts[k]
		r.rows += g.counts[k].ack.Rows
	}
	return err
}

// watch tells the progress what the sink has acknowledged, until it is stopped.
func (r *run) watch(s roundSink) (stop func()) {
	var seen tally
	update := func() {
		now := s.tally()
		r.Progress.Written(now.rows-seen.rows, now.cells-seen.cells, now.bytes-seen.bytes)
		for range now.retries - seen.retries {
			r.Progress.SinkRetried()
		}
		r.Progress.SinkPushedBack(now.pushbacks - seen.pushbacks)
		r.Progress.SinkPaced(now.pace)
		seen = now
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				update()
			case <-done:
				update()
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// scanned is the number of rows that the slices will read.
func scanned(p *scatter.Plan) uint64 {
	var n uint64
	for i := range p.Units {
		for _, c := range p.Units[i].Choices {
			if c.Chosen {
				n += c.Rows
			}
		}
	}
	return n
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

// interruptedBy is the error of what a context ended.
func interruptedBy(ctx context.Context) error {
	return failure.New(failure.Transient, context.Cause(ctx), "")
}

// inPreflight gives an error of the source or the sink the class of the phase
// in which nothing has been written yet.
func inPreflight(err error) error {
	switch failure.ClassOf(err) {
	case failure.Source, failure.Sink:
		return failure.New(failure.Preflight, err, "")
	}
	return err
}
