package mover

import (
	"context"
	"errors"
	"fmt"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/fingerprint"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// verify counts what a round has gathered on both sides, judges it, and gives
// the units that are to be gathered again because their source changed.
func (r *run) verify(ctx context.Context, p *part, before *fingerprint.Fingerprint) ([]int, error) {
	c := verify.Checker{Job: r.Job, Nodes: r.src.client.Nodes(), Run: r.id, Log: r.Log}
	counts, err := c.Groups(ctx, &p.plan)
	if err != nil {
		return nil, err
	}
	for k, i := range p.units {
		r.units[i].count = &counts[k]
		if _, ok := r.dest.(cellScanner); ok && r.Job.Verify.Level == job.VerifyFull {
			ack := r.units[i].moved.ack
			counts[k].Written = written(ack)
		}
	}
	// The count was the last that was read of the source: what changes from here
	// on is no matter.
	after, err := r.fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.dest.count(ctx, p, counts); err != nil {
		return nil, err
	}
	drifted, err := r.findDrift(ctx, p, before, after)
	if err != nil {
		return nil, err
	}
	again, err := r.react(drifted)
	if err != nil {
		return nil, err
	}
	if err := r.judge(without(p.units, again)); err != nil {
		return nil, r.explain(ctx, p, err)
	}
	return again, nil
}

// written are the contents that a sink has acknowledged; without a slice it has none.
func written(ack sink.Ack) *verify.Contents {
	if ack.Sums == nil {
		ack.Sums = new(checksum.Table)
	}
	return &verify.Contents{Cells: uint64(ack.Cells), Sums: ack.Sums}
}

// explain adds to the verdict on a round what can be found out about its rows.
func (r *run) explain(ctx context.Context, p *part, verdict error) error {
	if failure.ClassOf(verdict) != failure.Mismatch {
		return verdict
	}
	var text string
	var err error
	if dest, ok := r.dest.(keyScanner); ok && r.lost(p) {
		r.Log.Info("there are fewer rows than were acknowledged: looking for two with one key")
		text, err = r.findRepeated(ctx, p, dest)
	}
	if dest, ok := r.dest.(cellScanner); ok && err == nil && text == "" && r.Job.Verify.Level == job.VerifyFull {
		r.Log.Info("the cells in HBase are not those of ClickHouse: looking for the rows")
		text, err = r.findDifferent(ctx, p, dest)
	}
	switch {
	case err != nil:
		r.Log.Warn("could not find out which rows are wrong", "error", err)
		return verdict
	case text == "":
		return verdict
	}
	return failure.New(failure.Mismatch, fmt.Errorf("%w\n%s", verdict, text), failure.Remedy(verdict))
}

// judge turns the counts of units into an error unless all of them match.
func (r *run) judge(units []int) error {
	var errs []error
	for _, i := range units {
		u := &r.plan.Units[i]
		if err := judgeUnit(u, *r.units[i].moved, *r.units[i].count, r.drift.still, r.dest.holds()); err != nil {
			errs = append(errs, fmt.Errorf("level %s, period %s: %w", u.Level, u.Period, err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	err := errors.Join(errs...)
	remedy := "nothing was published; if rows were inserted during the run, run it again when the source is at rest"
	if failure.Remedy(err) != "" {
		remedy = "" // one of them knows better
	}
	return failure.New(failure.Mismatch, err, remedy)
}

// changed tells whether the source's rows were not the same all the time.
func changed(u *scatter.UnitPlan, moved sliceCount, c verify.Count) bool {
	return !u.Uncounted && (moved.sourceRows != c.SourceRows || moved.sourceRows != u.Rows)
}

// judgeUnit compares what was moved with what was counted. Every acknowledged
// row is one key: fewer keys than rows means that two rows had one key. Fewer
// source rows than were there before and after means that a node gave a part of
// its answer: then every group may be there, with sums that are too small. So it
// is with any difference where the source was still: replicas that do not have
// the same rows, for example.
func judgeUnit(u *scatter.UnitPlan, moved sliceCount, c verify.Count, still bool, holds string) error {
	switch acked := uint64(moved.ack.Rows); {
	case c.Verdict() == verify.Mismatch && c.Groups == c.Keys:
		return fmt.Errorf("%s: %s", c, c.Verdict())
	case c.Verdict() != verify.Match:
		return fmt.Errorf("%d groups in ClickHouse, %d %s: %s", c.Groups, c.Keys, holds, c.Verdict())
	case acked != c.Keys:
		if u.Strategy == scatter.StrategyLocal && acked > c.Keys {
			return failure.New(failure.Mismatch, fmt.Errorf("%d rows were acknowledged, there are %d %s: groups came from two shards, though %s is sharded by them", acked, c.Keys, holds, u.Local),
				"rows were not placed by the sharding key: set scatter.strategy: hash")
		}
		return fmt.Errorf("%d rows were acknowledged, there are %d %s", acked, c.Keys, holds)
	case !u.Uncounted && moved.sourceRows < min(u.Rows, c.SourceRows):
		return fmt.Errorf("the rows are the aggregates of %d source rows; %d were counted before and %d after", moved.sourceRows, u.Rows, c.SourceRows)
	case still && changed(u, moved, c):
		return fmt.Errorf("%d source rows were planned, %d moved and %d counted, though no part of the source changed: do all replicas have the same rows?",
			u.Rows, moved.sourceRows, c.SourceRows)
	}
	return nil
}
