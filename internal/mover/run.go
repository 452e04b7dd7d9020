package mover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	hbasesink "github.com/ck2hbase/ck2hbase/internal/sink/hbase"
	"github.com/ck2hbase/ck2hbase/internal/spool"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

const (
	// sliceAttempts is how often a slice is tried when it fails for a reason
	// that may pass, and slicePause the wait before the second try.
	sliceAttempts = 4
	slicePause    = time.Second
	// farewell bounds what a run still writes to the ledger when it ends.
	farewell = 4 * time.Second
	// maxRegions bounds the pre-splits of a new table.
	maxRegions = 256
	// minVersions is what a family must keep: the published run and the next one.
	minVersions = 2
	// scanWorkers is the number of regions that are counted at once.
	scanWorkers = 4
	// watchEvery is how often the sink's counters are looked at.
	watchEvery = 250 * time.Millisecond
)

// A run is one execution of a job for a date.
type run struct {
	*Mover
	id      string
	started time.Time

	src    *source
	spool  *spool.Spool // nil: rows do not wait on disk
	hb     *hbase.Client
	ledger *ledger.Ledger
	lease  *ledger.Lease
	plan   *scatter.Plan
	record ledger.Run
	units  []unitState // as in the plan
	drift  drift
}

// A unitState is how far a unit of the plan has come.
type unitState struct {
	t       int64         // the timestamp of its cells, 0 before there is one
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
	err := r.phases(ctx)
	r.close()
	m.Progress.End()
	if err != nil && ctx.Err() != nil {
		err = failure.New(failure.Transient, err, "run the same command again")
	}
	return r.result(err), err
}

func (r *run) close() {
	if r.src != nil {
		r.src.Close()
	}
	if r.hb != nil {
		r.hb.Close()
	}
}

func (r *run) phases(ctx context.Context) error {
	r.Progress.Begin(report.Preflight)
	if err := r.preflight(ctx); err != nil {
		return err
	}
	return r.alone(ctx, func(ctx context.Context) error {
		if err := r.gather(ctx); err != nil {
			return err
		}
		r.Progress.Begin(report.Publish)
		return r.publish(ctx)
	})
}

// preflight opens both sides and checks all that can be checked before
// anything is written.
func (r *run) preflight(ctx context.Context) error {
	var err error
	if r.src, err = r.openSource(ctx, r.id); err != nil {
		return err
	}
	for _, w := range r.src.codec.Warnings() {
		r.Log.Warn(w)
	}
	if r.hb, err = hbase.Dial(ctx, r.Job.HBase.Clusters[0], r.Log); err != nil {
		return r.Job.ErrorAt("sink.hbase.clusters[0]", err)
	}
	if err := r.checkTable(ctx); err != nil {
		return inPreflight(err)
	}
	r.ledger = ledger.New(&hbaseStore{r.hb}, r.Log)
	if err := r.watchSource(ctx); err != nil {
		return err
	}
	r.spool, err = r.openSpool()
	return err
}

// checkTable looks at the table if it exists; an absent one will be made.
func (r *run) checkTable(ctx context.Context) error {
	h := r.Job.HBase
	table, err := r.hb.Table(ctx, h.Table)
	if err != nil || table == nil {
		return err
	}
	if _, ok := table.Families[h.Family]; !ok {
		return r.Job.ErrorAt("sink.hbase.family", failure.New(failure.Preflight,
			fmt.Errorf("table %s has no family %q", h.Table, h.Family),
			"its families: "+strings.Join(slices.Sorted(maps.Keys(table.Families)), ", ")))
	}
	if versions, err := strconv.Atoi(table.Families[h.Family]["VERSIONS"]); err == nil && versions < minVersions {
		return r.Job.ErrorAt("sink.hbase.table", failure.New(failure.Preflight,
			fmt.Errorf("family %s of table %s keeps %d version of a cell: while a run writes, readers would lose the run before it", h.Family, h.Table, versions),
			fmt.Sprintf("alter '%s', {NAME => '%s', VERSIONS => %d} in the HBase shell", h.Table, h.Family, minVersions)))
	}
	if !table.Enabled {
		return r.Job.ErrorAt("sink.hbase.table", failure.New(failure.Preflight,
			fmt.Errorf("table %s is disabled", h.Table), "enable it in the HBase shell"))
	}
	return nil
}

// alone runs body while holding the lease of the job and date, and keeps the
// run's record in the ledger.
func (r *run) alone(ctx context.Context, body func(context.Context) error) error {
	err := ensureLedger(ctx, r.hb)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // only for messages
	owner := ledger.Owner{Run: r.id, Host: host, PID: os.Getpid()}
	var leased context.Context
	r.lease, leased, err = r.ledger.Acquire(ctx, r.Job.Name, day(r.Date), owner)
	if err != nil {
		return err
	}
	r.record = ledger.Run{
		ID: r.id, Job: r.Job.Name, Date: day(r.Date), JobHash: r.Job.Hash(),
		State: ledger.Running, Started: r.started.UTC(), Host: host, PID: owner.PID,
		Table: r.Job.HBase.Table, Family: r.Job.HBase.Family,
	}
	if err = r.checkOthers(leased); err == nil {
		err = r.clearAway(leased)
	}
	if err == nil {
		// From here on a successor can find out what this run has left.
		err = r.ledger.SaveRun(leased, r.record)
	}
	if err == nil {
		err = body(leased)
	}
	if cause := context.Cause(leased); err != nil && errors.Is(cause, ledger.ErrLost) {
		err = cause
	}
	r.farewell(ctx, err)
	return err
}

// checkOthers refuses a table in which another job writes keys that may be the
// same as this one's.
func (r *run) checkOthers(ctx context.Context) error {
	h := r.Job.HBase
	use := ledger.TableUse{Job: r.Job.Name, RowKey: h.RowKey}
	if h.Salt != nil {
		use.SaltDigits = h.Salt.Width()
	}
	others, err := r.ledger.UseTable(ctx, h.Table, use)
	if err != nil || len(others) == 0 {
		return err
	}
	other := others[0]
	return r.Job.ErrorAt("sink.hbase.row_key", failure.New(failure.Preflight,
		fmt.Errorf("job %s writes to table %s too, and its keys may be the same: its row_key is %s", other.Job, h.Table, other.RowKey),
		fmt.Sprintf("begin row_key with a literal that no other job's begins with (after {salt}, if any), or use another table; if job %s is no more, delete row %q of %s",
			other.Job, ledger.UseRow(h.Table, other.Job), ledger.Table)))
}

// farewell records the end of the run and lets the lease go, even when ctx has
// ended. What cannot be written any more is logged: it is not needed.
func (r *run) farewell(ctx context.Context, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	r.record.State = ledger.Published
	if err != nil {
		r.record.State, r.record.Error = ledger.Failed, err.Error()
	}
	if saveErr := r.ledger.SaveRun(ctx, r.record); saveErr != nil {
		r.Log.Warn("could not record the end of the run", "error", saveErr)
	}
	if releaseErr := r.lease.Release(ctx); releaseErr != nil && !errors.Is(releaseErr, ledger.ErrLost) {
		r.Log.Warn("could not let the lease go; it ends by itself", "error", releaseErr)
	}
}

// scatter makes the table if there is none, stores the round's timestamp, and
// moves all slices.
func (r *run) scatter(ctx context.Context, p *part) error {
	if err := r.makeTable(ctx); err != nil {
		return err
	}
	if err := r.stamp(ctx, p); err != nil {
		return err
	}
	h := r.Job.HBase
	s, err := hbasesink.New(hbasesink.Config{
		Client: r.hb, Table: h.Table, Family: h.Family, Columns: h.Columns, Keys: r.src.codec, Cells: r.src.cells,
		Timestamp: p.t, Batch: h.Batch, Log: r.Log,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	defer r.watch(s)()
	tasks := p.plan.Tasks()
	r.Progress.PlanSlices(len(tasks))
	r.Progress.Estimate(int64(scanned(&p.plan)), int64(p.plan.Groups()))
	nodes := r.src.client.Nodes()
	g := newGatherer(r.Mover, r.id, nodes, &p.plan, s, newReadAhead(queueBytes, r.spool, r.Log, r.Progress))
	e := scatter.Executor[scatter.Piece]{
		Nodes: len(nodes), PerNode: r.Job.Scatter.PerNode, Total: r.Job.Scatter.Parallel, Attempts: sliceAttempts, Pause: slicePause, Log: r.Log,
		Split: g.split(&scatter.Splitter{Job: r.Job, Nodes: nodes, Run: r.id, Log: r.Log}),
	}
	err = e.Run(ctx, tasks, g.slice)
	for k, i := range p.units {
		r.units[i].moved = &g.counts[k]
		r.record.Rows += g.counts[k].ack.Rows
	}
	return err
}

// stamp takes a timestamp for the cells of a round. It is in the run's record
// before the first cell is written: whoever comes after a run that died can
// find all that it has left.
func (r *run) stamp(ctx context.Context, p *part) error {
	var err error
	if p.t, err = r.ledger.NextTimestamp(ctx, r.Job.HBase.Table, r.id); err != nil {
		return err
	}
	if r.record.T == 0 {
		r.record.T = p.t
	} else {
		r.record.Again = append(r.record.Again, p.t)
	}
	if err := r.ledger.SaveRun(ctx, r.record); err != nil {
		return err
	}
	for _, i := range p.units {
		r.units[i].t = p.t
	}
	return nil
}

// watch tells the progress what the sink has acknowledged, until it is stopped.
func (r *run) watch(s *hbasesink.Sink) (stop func()) {
	var seen hbasesink.Stats
	update := func() {
		now := s.Stats()
		r.Progress.Written(now.Rows-seen.Rows, now.Cells-seen.Cells, now.Bytes-seen.Bytes)
		for range now.Retries - seen.Retries {
			r.Progress.SinkRetried()
		}
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

func (r *run) makeTable(ctx context.Context) error {
	h := r.Job.HBase
	table, err := r.hb.Table(ctx, h.Table)
	if err != nil || table != nil {
		return err
	}
	splits := r.src.codec.Splits(maxRegions)
	r.Log.Info("creating the table", "table", h.Table, "family", h.Family, "regions", len(splits)+1)
	err = r.hb.CreateTable(ctx, hbase.TableSpec{Name: h.Table, Family: h.Family, Create: h.Create, Splits: splits})
	if failure.ClassOf(err) == failure.Sink {
		err = r.Job.ErrorAt("sink.hbase.create.compression", failure.New(failure.Sink, err,
			"may the user create tables, and have all region servers what create: asks for, the compression above all?"))
	}
	return err
}

func (r *run) publish(ctx context.Context) error {
	// A process that was stopped for a while may have lost the lease unawares.
	if err := r.lease.Renew(ctx); err != nil {
		return failure.New(failure.Transient, fmt.Errorf("before publishing: %w", err), "")
	}
	now := time.Now().UTC()
	for i := range r.plan.Units {
		u := &r.plan.Units[i]
		p := ledger.Pointer{
			Job: r.Job.Name, Date: day(r.Date), Level: u.Level, Period: u.Period, Run: r.id,
			Since: r.units[i].t, Until: r.units[i].t + 1, Rows: r.units[i].count.Keys, Verified: string(r.Job.Verify.Level), At: now,
			Table: r.Job.HBase.Table, Family: r.Job.HBase.Family, RowKey: keyOf(r.Job),
		}
		for j, c := range u.Columns {
			f := ledger.Field{Name: c.Name, Type: c.Type.Name}
			if j < len(u.Columns)-len(r.Job.Metrics) {
				p.Dimensions = append(p.Dimensions, f)
			} else {
				p.Metrics = append(p.Metrics, f)
			}
		}
		if err := r.ledger.Publish(ctx, p); err != nil {
			return fmt.Errorf("publishing level %s, period %s: %w", u.Level, u.Period, err)
		}
	}
	r.Progress.Succeeded(now)
	return nil
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

// inPreflight gives an error of the source or the sink the class of the phase
// in which nothing has been written yet.
func inPreflight(err error) error {
	switch failure.ClassOf(err) {
	case failure.Source, failure.Sink:
		return failure.New(failure.Preflight, err, "")
	}
	return err
}
