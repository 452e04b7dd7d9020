package mover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/fingerprint"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// mostReruns is how often units are gathered again whose source does not rest.
const mostReruns = 3

// A part is what one round gathers: some units of the job, with a plan and a
// timestamp of their own.
type part struct {
	plan  scatter.Plan // of these units alone
	units []int        // their numbers in the run's plan
}

// gather gathers and verifies all units; and, if the job says so, those whose
// source changed meanwhile again.
//
// To gather again means to forget the cells of these units at their timestamp,
// and to begin anew at another one. At the same timestamp it could not be exact:
// a row that is gone from the source would stay, and so would a cell whose metric
// has become NULL, which no count can tell; and what is deleted at a timestamp
// hides whatever is put there later. Since each unit has a pointer of its own,
// nothing says that all must have the same timestamp. The cells are forgotten
// first, because HBase keeps two versions of a cell and one of them is the published run's.
func (r *run) gather(ctx context.Context) error {
	var again []int // none: all of them
	for {
		var err error
		if again, err = r.round(ctx, again); err != nil || len(again) == 0 {
			return err
		}
		if r.drift.reruns == mostReruns {
			return failure.New(failure.Transient, fmt.Errorf("after %d more rounds the source still changes while it is read: %s", mostReruns, r.drift.summary()),
				"nothing was published; run the same command again when the source is at rest")
		}
		r.drift.reruns++
		r.Log.Warn("what changed in the source is gathered again", "round", r.drift.reruns, "units", len(again), "changes", r.drift.summary())
		if err := r.dest.forget(ctx, again); err != nil {
			return fmt.Errorf("removing what is gathered again: %w", err)
		}
	}
}

// round plans, moves and verifies units, and gives those to be gathered again.
func (r *run) round(ctx context.Context, units []int) ([]int, error) {
	before, err := r.fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	r.Progress.Begin(report.Plan)
	p, err := r.planPart(ctx, units, before)
	if err != nil {
		return nil, err
	}
	r.Progress.Begin(report.Scatter)
	if err := r.scatter(ctx, p); err != nil {
		return nil, err
	}
	r.Progress.Begin(report.Verify)
	return r.verify(ctx, p, before)
}

// planPart makes a new plan, since the old one counted what is no more, and
// keeps the given units of it; none stands for all.
func (r *run) planPart(ctx context.Context, units []int, source *fingerprint.Fingerprint) (*part, error) {
	plan, err := r.choosePlan(ctx, units == nil, source)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := r.dest.keepPlan(ctx, plan); err != nil {
		return nil, err
	}
	if units == nil {
		for i := range plan.Units {
			units = append(units, i)
		}
		r.plan, r.units = plan, make([]unitState, len(plan.Units))
	}
	p := &part{plan: *plan, units: units}
	p.plan.Units = nil
	for _, i := range units {
		r.plan.Units[i] = plan.Units[i]
		r.units[i] = unitState{}
		p.plan.Units = append(p.plan.Units, plan.Units[i])
	}
	if r.plan.Rows() == 0 && !r.Job.Verify.AllowEmpty {
		return nil, r.Job.ErrorAt("source.where", failure.New(failure.Source, errors.New("the source has no rows for any level and period"),
			"check the date and the filter, and whether the source is loaded; verify.allow_empty publishes it all the same"))
	}
	return p, nil
}

// choosePlan takes the plan that was given, in the first round, or makes one.
// A plan of another state of the source is refused: its numbers of rows are those
// that the slices are compared with.
func (r *run) choosePlan(ctx context.Context, first bool, source *fingerprint.Fingerprint) (*scatter.Plan, error) {
	state := ""
	if source != nil {
		state = source.Hash()
	}
	if r.Given == nil || !first {
		plan, err := r.src.planner.Plan(ctx, r.Date)
		if err == nil {
			plan.Source = state
		}
		return plan, err
	}
	plan := r.Given
	switch {
	case plan.Date != day(r.Date):
		return nil, failure.New(failure.Preflight, fmt.Errorf("the plan is for %s", plan.Date), "make a new plan")
	case plan.Source != state:
		return nil, failure.New(failure.Preflight, errors.New("the source has changed since the plan was made"), "make a new plan")
	}
	return plan, r.src.planner.Adopt(ctx, plan)
}

// times are the first and the last timestamp of the units, 0 before there are any.
func (r *run) times() (first, last int64) {
	for i := range r.units {
		t, _ := r.dest.times(i)
		if t != 0 && (first == 0 || t < first) {
			first = t
		}
		last = max(last, t)
	}
	return first, last
}

// without gives the units that are not among others.
func without(units, others []int) []int {
	return slices.DeleteFunc(slices.Clone(units), func(i int) bool { return slices.Contains(others, i) })
}
