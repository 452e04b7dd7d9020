package scatter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// Adopt makes a plan that was read from JSON one that can be run: it learns the
// types anew, and deals the slices to the nodes that are there now. A plan
// whose queries are not those that the job would ask today, or that needs a
// shard of which no node is there, is refused.
func (p *Planner) Adopt(ctx context.Context, plan *Plan) error {
	date, err := job.ParseDate(plan.Date)
	if err != nil {
		return fmt.Errorf("the plan's date: %w", err)
	}
	units := p.Job.Units(date)
	if plan.Job != p.Job.Name || len(units) != len(plan.Units) {
		return outdated(fmt.Errorf("the plan has %d levels and periods of job %s, the job has %d", len(plan.Units), plan.Job, len(units)))
	}
	if plan.Hash() != plan.ID {
		return outdated(errors.New("the plan is not the one that was stored"))
	}
	for i, u := range units {
		if err := p.adopt(ctx, &plan.Units[i], u); err != nil {
			return err
		}
	}
	plan.Nodes = planNodes(p.Nodes)
	plan.assign()
	return nil
}

func outdated(err error) error {
	return failure.New(failure.Preflight, err, "make a new plan")
}

func (p *Planner) adopt(ctx context.Context, up *UnitPlan, u job.Unit) error {
	l, err := p.level(ctx, u)
	if err != nil {
		return err
	}
	up.Unit, up.Columns, up.dims = u, l.columns, l.dims
	up.by = nil
	for name := range strings.SplitSeq(up.Dimension, ", ") {
		for _, k := range up.group() {
			if k.name == name {
				up.by = append(up.by, k)
			}
		}
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return err
	}
	for _, s := range up.Slices {
		if len(nodesFor(p.Nodes, s.Shard)) == 0 {
			return outdated(fmt.Errorf("the plan needs a node of shard %d, and there is none", s.Shard))
		}
		if len(up.by) == 0 || b.on(s.Shard, up).Group(up.condition(s)) != s.SQL {
			return outdated(fmt.Errorf("level %s, period %s, slice %s is not what the job asks today", up.Level, up.Period, s.Name))
		}
	}
	return nil
}

func planNodes(nodes []*clickhouse.Node) []PlanNode {
	out := make([]PlanNode, len(nodes))
	for i, n := range nodes {
		out[i] = PlanNode{n.Addr, n.Shard, n.Replica, n.Version}
	}
	return out
}
