package mover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink/dry"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// Verify compares what readers see of the date in one of the job's clusters with
// what ClickHouse gives for it now, by the job's level of verification. It writes
// nothing, and takes no lease: a run may be at work. The error has class Mismatch
// if something differs, be it that the source has changed since.
func (m *Mover) Verify(ctx context.Context, cluster int) (*report.Result, error) {
	if m.Job.File != nil {
		return nil, m.Job.ErrorAt("sink.file", failure.Errorf(failure.Usage, "the job writes files, which are verified when they are written"))
	}
	r := &run{Mover: m, started: time.Now()}
	r.id = newRunID(r.started)
	d := newHBaseTable(m, r.id, r.started, cluster)
	r.dest = d
	err := r.check(ctx, d)
	r.close()
	r.Progress.End()
	res := r.result(err)
	if res.Compared = true; err == nil {
		res.State = report.Verified
	}
	return res, err
}

func (r *run) check(ctx context.Context, d *hbaseTable) error {
	r.Progress.Begin(report.Preflight)
	var err error
	if r.src, err = r.openSource(ctx, r.id); err != nil {
		return err
	}
	if err := d.open(ctx, r.src); err != nil {
		return err
	}
	if err := d.adoptPublished(ctx); err != nil {
		return err
	}
	r.Progress.Begin(report.Plan)
	if r.plan, err = r.src.planner.Plan(ctx, r.Date); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	r.units = make([]unitState, len(r.plan.Units))
	d.blind = r.floats()
	r.Progress.Begin(report.Verify)
	var errs []error
	for _, p := range r.partsByTime(d) {
		if err := r.checkPart(ctx, d, p); failure.ClassOf(err) == failure.Mismatch {
			errs = append(errs, err)
		} else if err != nil {
			return err
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return failure.New(failure.Mismatch, errors.Join(errs...), "run the job again if the source has changed since it was published; else find out who writes to the table")
}

// adoptPublished takes the timestamps of what is published for the date.
func (d *hbaseTable) adoptPublished(ctx context.Context) error {
	var pointers []ledger.Pointer
	table, err := d.hb.Table(ctx, ledger.Table)
	if err == nil && table != nil {
		pointers, err = d.ledger.Pointers(ctx, d.Job.Name, day(d.Date))
	}
	if err != nil {
		return inPreflight(err)
	}
	units := d.Job.Units(d.Date)
	for i, p := range ownPointers(units, pointers) {
		switch {
		case p == nil:
			return failure.New(failure.Preflight, fmt.Errorf("job %s: nothing is published for %s of level %s, period %s", d.Job.Name, day(d.Date), units[i].Code, units[i].Period.Period),
				"run the job for that date")
		case p.RowKey != keyOf(d.Job):
			return d.Job.ErrorAt("sink.hbase.row_key", failure.New(failure.Usage,
				fmt.Errorf("the keys have changed since run %s was published: they were %s", p.Run, p.RowKey), "run the job again"))
		}
		d.stamps[i] = p.Since
	}
	return nil
}

// partsByTime are the units of the plan, those whose cells have one timestamp together.
func (r *run) partsByTime(d *hbaseTable) []*part {
	var parts []*part
	for i := range r.plan.Units {
		k := slices.IndexFunc(parts, func(p *part) bool { return d.stamps[p.units[0]] == d.stamps[i] })
		if k < 0 {
			k = len(parts)
			p := &part{plan: *r.plan}
			p.plan.Units = nil
			parts = append(parts, p)
		}
		parts[k].units = append(parts[k].units, i)
		parts[k].plan.Units = append(parts[k].plan.Units, r.plan.Units[i])
	}
	return parts
}

// checkPart compares units whose cells have one timestamp.
func (r *run) checkPart(ctx context.Context, d *hbaseTable, p *part) error {
	c := verify.Checker{Job: r.Job, Nodes: r.src.client.Nodes(), Run: r.id, Log: r.Log}
	counts, err := c.Groups(ctx, &p.plan)
	if err != nil {
		return err
	}
	if r.Job.Verify.Level == job.VerifyFull {
		s := dry.New(r.src.codec, r.src.cells, r.Job.HBase.Columns)
		s.SumWith(r.Job.HBase.Family, d.blind)
		moved, err := r.replay(ctx, p, s)
		if err != nil {
			return err
		}
		for k := range counts {
			counts[k].Written = written(moved[k].ack)
		}
	}
	if err := d.count(ctx, p, counts); err != nil {
		return err
	}
	var errs []error
	for k, i := range p.units {
		r.units[i].count = &counts[k]
		if v := counts[k].Verdict(); v != verify.Match {
			errs = append(errs, fmt.Errorf("level %s, period %s: %s: %s", p.plan.Units[k].Level, p.plan.Units[k].Period, counts[k], v))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return r.explain(ctx, p, failure.New(failure.Mismatch, errors.Join(errs...), ""))
}

// floats tells the metrics whose values may differ in their last digits when they
// are computed again: the order in which floats are added is no fixed one. Packed
// metrics are one cell; it is no metric's alone.
func (r *run) floats() []bool {
	blind := make([]bool, r.src.cells.Len())
	for i := range blind {
		if r.Job.HBase.Pack == "" {
			blind[i] = r.src.metrics[i].Type.Kind == row.Float
		} else {
			blind[i] = slices.ContainsFunc(r.src.metrics, func(c row.Column) bool { return c.Type.Kind == row.Float })
		}
	}
	return blind
}

// seen is what of a cell is compared: nothing of the value of a metric that
// is blind.
func (d *hbaseTable) seen(cells []hbase.CellView) {
	if len(d.blind) == 0 {
		return
	}
	for i, c := range cells {
		k := slices.IndexFunc(d.Job.HBase.Columns, func(q string) bool { return q == string(c.Qualifier) })
		if k >= 0 && d.blind[k] && string(c.Family) == d.Job.HBase.Family {
			cells[i].Value = nil
		}
	}
}
