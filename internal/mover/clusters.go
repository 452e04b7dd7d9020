package mover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/spool"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// clusters is the same table in several HBase clusters. Each has its ledger, its
// lease, its timestamps, its queue, its retries and its verdict. With require:
// all, what fails in one ends the run; with require: any, that cluster is left
// out from there on, as long as another is left.
type clusters struct {
	*Mover
	all   []*target
	spool *spool.Spool // for what the clusters' queues cannot hold in memory

	mu     sync.Mutex
	cancel context.CancelCauseFunc // ends the run, once it has been entered
}

// A target is one of the clusters.
type target struct {
	*hbaseTable
	name string

	// These are guarded by clusters.mu.
	err       error // why it was left out
	entered   bool
	upToDate  bool // it has what this run makes for others
	published bool
	drop      context.CancelCauseFunc // ends what is under way there in a round
}

var _ destination = (*clusters)(nil)

func newClusters(m *Mover, run string, started time.Time) *clusters {
	d := &clusters{Mover: m}
	for i, c := range m.Job.HBase.Clusters {
		d.all = append(d.all, &target{hbaseTable: newHBaseTable(m, run, started, i), name: c.Name})
	}
	return d
}

func (d *clusters) String() string {
	var names []string
	for _, t := range d.all {
		names = append(names, t.name)
	}
	return fmt.Sprintf("hbase %s, table %s", strings.Join(names, " and "), d.Job.HBase.Table)
}

func (d *clusters) holds() string { return "row keys in HBase" }

func (d *clusters) notes() []string {
	var notes []string
	for _, t := range d.all {
		for _, text := range t.notes() {
			notes = append(notes, t.name+": "+text)
		}
	}
	return notes
}

// live are the clusters that the run writes to and that were not left out.
func (d *clusters) live() []*target {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.all), func(t *target) bool { return t.err != nil || t.upToDate })
}

// out leaves a cluster out. The error that it returns is nil if the run can go
// on without; else the run ends.
func (d *clusters) out(t *target, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.err == nil {
		t.err = err
		d.Log.Error("a cluster is left out of the run", "cluster", t.name, "error", err)
	}
	if t.drop != nil {
		t.drop(err)
	}
	alone := !slices.ContainsFunc(d.all, func(t *target) bool { return t.err == nil && !t.upToDate })
	if d.Job.HBase.Require == job.RequireAny && !alone {
		return nil
	}
	if d.cancel != nil {
		d.cancel(err)
	}
	return err
}

// end ends the run for what is no cluster's fault.
func (d *clusters) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel(err)
	}
}

// each does something for each cluster that is left, one after the other.
func (d *clusters) each(ctx context.Context, do func(t *target) error) error {
	for _, t := range d.live() {
		err := do(t)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return err // it is not the cluster's fault
		}
		if err := d.out(t, err); err != nil {
			return err
		}
	}
	return nil
}

func (d *clusters) open(ctx context.Context, src *source) error {
	return d.each(ctx, func(t *target) error { return t.open(ctx, src) })
}

// enter takes the lease in every cluster that answers, in the order of the file,
// finds out which are behind the others, and begins the run in these.
func (d *clusters) enter(ctx context.Context) (context.Context, error) {
	entered, cancel := context.WithCancelCause(ctx)
	err := d.each(ctx, func(t *target) error {
		err := t.acquire(entered)
		d.mu.Lock()
		t.entered = err == nil
		d.mu.Unlock()
		return err
	})
	if err == nil {
		err = d.locked()
	}
	if err == nil {
		err = d.leaveGoodAlone(entered)
	}
	if err == nil {
		err = d.each(entered, func(t *target) error { return t.register(t.leased) })
	}
	if err != nil {
		d.leave(ctx, 0, err)
		cancel(err)
		return nil, err
	}
	d.mu.Lock()
	d.cancel = cancel
	d.mu.Unlock()
	d.watchLeases(entered)
	return entered, nil
}

// watchLeases leaves a cluster out as soon as its lease is lost while the run goes on.
func (d *clusters) watchLeases(ctx context.Context) {
	for _, t := range d.live() {
		context.AfterFunc(t.leased, func() { d.lostLease(ctx, t) })
	}
}

// locked is the error of a cluster in which another run is at work: that is no
// reason to go on without it.
func (d *clusters) locked() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.all {
		if failure.ClassOf(t.err) == failure.Locked {
			return t.err
		}
	}
	return nil
}

// lostLease leaves a cluster out, unless its lease ended because the run did.
func (d *clusters) lostLease(ctx context.Context, t *target) {
	d.mu.Lock()
	entered := t.entered
	d.mu.Unlock()
	if entered && ctx.Err() == nil {
		_ = d.out(t, context.Cause(t.leased)) // which ends the run if need be
	}
}

func (d *clusters) keepPlan(ctx context.Context, plan *scatter.Plan) error {
	return d.each(ctx, func(t *target) error { return t.keepPlan(ctx, plan) })
}

func (d *clusters) begin(ctx context.Context, p *part) (roundSink, error) {
	slots := len(d.all[0].src.client.Nodes()) * d.Job.Scatter.PerNode
	if d.Job.Scatter.Parallel > 0 {
		slots = min(slots, d.Job.Scatter.Parallel)
	}
	f := &fanout{clusters: d}
	err := d.each(ctx, func(t *target) error {
		s, err := t.begin(ctx, p)
		if err != nil {
			return err
		}
		f.branches = append(f.branches, d.newBranch(t, s, slots))
		return nil
	})
	if err != nil {
		return roundSink{}, errors.Join(err, f.Close())
	}
	for _, b := range f.branches {
		b.ahead = newReadAhead(queueBytes/int64(len(f.branches)), d.spool, d.Log, d.Progress)
	}
	return roundSink{f, f.tally, f.settle}, nil
}

// count counts in each cluster. One that has other numbers than ClickHouse where
// another has the same is to blame itself; where none has, the run judges.
func (d *clusters) count(ctx context.Context, p *part, counts []verify.Count) error {
	byTarget := map[*target][]verify.Count{}
	err := d.each(ctx, func(t *target) error {
		own := slices.Clone(counts)
		byTarget[t] = own
		return t.count(ctx, p, own)
	})
	if err != nil {
		return err
	}
	live := d.live()
	var all [][]verify.Count
	for _, t := range live {
		all = append(all, byTarget[t])
	}
	wrong := toBlame(all)
	err = d.each(ctx, func(t *target) error {
		var errs []error
		for _, k := range wrong[slices.Index(live, t)] {
			u, c := &p.plan.Units[k], byTarget[t][k]
			errs = append(errs, fmt.Errorf("level %s, period %s: HBase %s: %s", u.Level, u.Period, t.name, c))
		}
		if len(errs) == 0 {
			return nil
		}
		return failure.New(failure.Mismatch, errors.Join(errs...), "run the same command again")
	})
	if live = d.live(); err == nil && len(live) == 0 {
		return context.Cause(ctx)
	}
	if err == nil {
		copy(counts, byTarget[live[0]])
	}
	return err
}

// toBlame gives for each cluster the units that are wrong there and right in
// another. What is wrong in all of them is none's own fault.
func toBlame(counts [][]verify.Count) [][]int {
	units := make([][]int, len(counts))
	for i, own := range counts {
		for k, c := range own {
			right := slices.ContainsFunc(counts, func(other []verify.Count) bool { return other[k].Verdict() == verify.Match })
			if right && c.Verdict() != verify.Match {
				units[i] = append(units[i], k)
			}
		}
	}
	return units
}

// first is the first cluster that was not left out: all got the same rows. Where
// none is left, the error is why.
func (d *clusters) first(ctx context.Context) (*target, error) {
	if live := d.live(); len(live) > 0 {
		return live[0], nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, errors.New("no cluster is left")
}

func (d *clusters) scanKeys(ctx context.Context, p *part, fn func(key []byte) error) error {
	t, err := d.first(ctx)
	if err != nil {
		return err
	}
	return t.scanKeys(ctx, p, fn)
}

func (d *clusters) scanCells(ctx context.Context, p *part, fn func(key []byte, cells []hbase.CellView) error) error {
	t, err := d.first(ctx)
	if err != nil {
		return err
	}
	return t.scanCells(ctx, p, fn)
}

func (d *clusters) regions(ctx context.Context) ([]hbase.Region, error) {
	t, err := d.first(ctx)
	if err != nil {
		return nil, err
	}
	return t.regions(ctx)
}

func (d *clusters) forget(ctx context.Context, units []int) error {
	return d.each(ctx, func(t *target) error { return t.forget(ctx, units) })
}

// times are those of the first cluster that was not left out.
func (d *clusters) times(unit int) (since, until int64) {
	live := d.live()
	if len(live) == 0 {
		live = d.all
	}
	return live[0].times(unit)
}

func (d *clusters) publish(ctx context.Context, plan *scatter.Plan, rows func(unit int) uint64) error {
	return d.each(ctx, func(t *target) error {
		err := t.publish(ctx, plan, rows)
		if err == nil {
			d.mu.Lock()
			t.published = true
			d.mu.Unlock()
		}
		return err
	})
}

func (d *clusters) leave(ctx context.Context, rows int64, err error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, t := range d.all {
		d.mu.Lock()
		end := t.err
		if end == nil && !t.published {
			end = err
		}
		entered := t.entered
		t.entered = false
		d.mu.Unlock()
		switch {
		case entered && t.record.ID != "":
			wg.Go(func() { t.leave(ctx, rows, end) })
		case entered:
			wg.Go(func() { t.release(ctx) })
		}
	}
}

func (d *clusters) close() {
	for _, t := range d.all {
		t.close()
	}
}

// verdicts say what became of each cluster.
func (d *clusters) verdicts(err error) []report.ClusterResult {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []report.ClusterResult
	for _, t := range d.all {
		c := report.ClusterResult{Name: t.name, State: string(report.StateOf(err))}
		switch {
		case t.err != nil:
			c.State, c.Error = string(report.StateOf(t.err)), t.err.Error()
		case t.upToDate:
			c.State = report.UpToDate
		case t.published:
			c.State = string(report.Published)
		case err == nil, failure.ClassOf(err) == failure.Locked:
		default:
			c.State = report.NotPublished
		}
		for _, stamp := range t.stamps {
			if c.Since == 0 || stamp < c.Since {
				c.Since = stamp
			}
			c.Until = max(c.Until, stamp+1)
		}
		all = append(all, c)
	}
	return all
}
