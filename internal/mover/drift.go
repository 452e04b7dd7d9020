package mover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/fingerprint"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// drift is what a run knows of changes of its source.
type drift struct {
	table *fingerprint.Table // nil where parts cannot be seen
	// unknown is why changes cannot be told; empty where they can.
	unknown string
	// judged says that a round has looked for changes, and changes are those of
	// the last one, in partitions that the filter takes rows from.
	judged  bool
	changes []fingerprint.Change
	// still says that no part changed on any node during the last round.
	still  bool
	reruns int
}

// watchSource finds the parts to look at. A job that is not to be published
// when the source changes is refused where that could not be noticed.
func (r *run) watchSource(ctx context.Context) error {
	err := fmt.Errorf("%w: the job has a query of its own, whose tables and filter the mover does not know", fingerprint.ErrNone)
	var table *fingerprint.Table
	if r.Job.SQL == "" {
		table, err = fingerprint.Find(ctx, r.Job.Source, r.src.client.Nodes(), r.Log)
	}
	switch {
	case err == nil:
		r.drift.table = table
		return nil
	case !errors.Is(err, fingerprint.ErrNone):
		return inPreflight(err)
	case r.Job.Source.OnChange == job.ChangeWarn:
		r.drift.unknown = err.Error()
		r.Log.Info("changes of the source during the run show in its numbers of rows only", "reason", err)
		return nil
	}
	return r.Job.ErrorAt("source.on_change", failure.New(failure.Preflight, err,
		"name a Distributed table over MergeTree tables whose parts the user may see in system.parts, or set on_change: warn"))
}

// fingerprint looks at the source's parts; nil where that cannot be done.
func (r *run) fingerprint(ctx context.Context) (*fingerprint.Fingerprint, error) {
	if r.drift.table == nil {
		return nil, nil
	}
	f, err := r.drift.table.Take(ctx)
	switch {
	case err == nil:
		return &f, nil
	case r.Job.Source.OnChange == job.ChangeWarn && ctx.Err() == nil:
		r.cannotTell(err)
		return nil, nil
	}
	return nil, err
}

func (r *run) cannotTell(why error) {
	r.drift.unknown = "it cannot be told whether the source changed: " + why.Error()
	r.Log.Warn("it cannot be told whether the source changed", "reason", why)
}

// findDrift marks the units whose source changed while they were gathered, and
// gives their numbers. A change of the parts counts where the filter takes rows
// from the partition. Rows that are gone cannot be asked for: they show in the
// numbers of rows, which are a sign of their own.
func (r *run) findDrift(ctx context.Context, p *part, before, after *fingerprint.Fingerprint) ([]int, error) {
	var changes []fingerprint.Change
	r.drift.still = false
	if before != nil && after != nil {
		var complete bool
		if changes, complete = before.Compare(*after); !complete {
			r.cannotTell(errors.New("of a shard no node was reached both before and after"))
		}
		r.drift.still = before.Hash() == after.Hash()
	}
	r.drift.judged, r.drift.changes = true, nil
	var drifted []int
	asked := map[string][]fingerprint.Change{} // levels share filters
	for k, i := range p.units {
		u := &p.plan.Units[k]
		where, err := job.Render(r.Job.Source.Where, u.Unit)
		if err != nil {
			return nil, err
		}
		touched, ok := asked[where]
		if !ok && len(changes) > 0 {
			if touched, err = r.drift.table.Touched(ctx, where, changes); err != nil {
				return nil, err
			}
			asked[where] = touched
		}
		state := &r.units[i]
		counted := changed(u, *state.moved, *state.count)
		if counted && fewer(u, state) {
			touched = append(slices.Clip(touched), shrunk(changes)...)
		}
		if counted || len(touched) > 0 {
			state.changed = true
			drifted = append(drifted, i)
			r.drift.add(touched)
		}
	}
	return drifted, nil
}

// fewer tells whether source rows went missing between plan, slices and count.
func fewer(u *scatter.UnitPlan, s *unitState) bool {
	return s.moved.sourceRows < u.Rows || s.count.SourceRows < max(u.Rows, s.moved.sourceRows)
}

func shrunk(changes []fingerprint.Change) []fingerprint.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c fingerprint.Change) bool { return c.After.Rows >= c.Before.Rows })
}

func (d *drift) add(changes []fingerprint.Change) {
	for _, c := range changes {
		if !slices.Contains(d.changes, c) {
			d.changes = append(d.changes, c)
		}
	}
}

// summary names the changes, the first of them if there are many.
func (d *drift) summary() string {
	const most = 5
	if len(d.changes) == 0 {
		return "its numbers of rows differ"
	}
	var names []string
	for _, c := range d.changes[:min(most, len(d.changes))] {
		names = append(names, c.String())
	}
	text := "partition " + strings.Join(names, ", partition ")
	if more := len(d.changes) - most; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// react does with a change what the job says, and gives the units that are to
// be gathered again.
func (r *run) react(drifted []int) (again []int, err error) {
	mode := r.Job.Source.OnChange
	if r.drift.unknown != "" && mode != job.ChangeWarn {
		return nil, failure.New(failure.Transient, errors.New(r.drift.unknown),
			"nothing was published; run the same command again when all nodes can be reached")
	}
	if len(drifted) == 0 {
		return nil, nil
	}
	switch mode {
	case job.ChangeFail:
		return nil, failure.New(failure.Transient, fmt.Errorf("the source changed during the run: %s", r.drift.summary()),
			"nothing was published, as source.on_change says; run the same command again when the source is at rest")
	case job.ChangeRerun:
		return drifted, nil
	}
	for _, i := range drifted {
		u, s := &r.plan.Units[i], &r.units[i]
		r.Log.Warn("the source changed during the run", "level", u.Level, "period", u.Period, "rows_planned", u.Rows,
			"rows_moved", s.moved.sourceRows, "rows_counted", s.count.SourceRows, "changes", r.drift.summary())
	}
	return nil, nil
}
