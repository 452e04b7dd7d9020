package mover

import (
	"context"
	"errors"
	"fmt"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

func (r *run) verify(ctx context.Context) error {
	c := verify.Checker{
		Job: r.Job, Nodes: r.src.client.Nodes(), Run: r.id, Log: r.Log, Codec: r.src.codec,
		Scan: func(ctx context.Context, fn func(key []byte) error) error {
			_, err := r.hb.ScanKeys(ctx, r.Job.HBase.Table, r.t, r.t+1, scanWorkers, fn)
			return err
		},
	}
	counts, err := c.Groups(ctx, r.plan)
	r.counts = counts
	if err != nil {
		return err
	}
	if err := c.Keys(ctx, r.plan, counts); err != nil {
		return err
	}
	return r.judge()
}

// judge turns the counts into an error unless all of them match.
func (r *run) judge() error {
	var errs []error
	for i, c := range r.counts {
		u := &r.plan.Units[i]
		if err := judgeUnit(u, r.moved[i], c); err != nil {
			errs = append(errs, fmt.Errorf("level %s, period %s: %w", u.Level, u.Period, err))
		}
		if changed(u, r.moved[i], c) {
			r.Log.Warn("the source changed during the run", "level", u.Level, "period", u.Period,
				"rows_planned", u.Rows, "rows_moved", r.moved[i].sourceRows, "rows_counted", c.SourceRows)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return failure.New(failure.Mismatch, errors.Join(errs...),
		"nothing was published; if rows were inserted during the run, run it again when the source is at rest")
}

// changed tells whether the source's rows were not the same all the time.
func changed(u *scatter.UnitPlan, moved sliceCount, c verify.Count) bool {
	return !u.Uncounted && (moved.sourceRows != c.SourceRows || moved.sourceRows != u.Rows)
}

// judgeUnit compares what was moved with what was counted. Every acknowledged
// row is one key: fewer keys than rows means that two rows had one key. Fewer
// source rows than were there before and after means that a node gave a part of
// its answer: then every group may be there, with sums that are too small.
func judgeUnit(u *scatter.UnitPlan, moved sliceCount, c verify.Count) error {
	switch acked := uint64(moved.ack.Rows); {
	case c.Verdict() != verify.Match:
		return fmt.Errorf("%d groups in ClickHouse, %d row keys in HBase: %s", c.Groups, c.Keys, c.Verdict())
	case acked != c.Keys:
		return fmt.Errorf("%d rows were acknowledged, HBase has %d row keys", acked, c.Keys)
	case !u.Uncounted && moved.sourceRows < min(u.Rows, c.SourceRows):
		return fmt.Errorf("the rows are the aggregates of %d source rows; %d were counted before and %d after", moved.sourceRows, u.Rows, c.SourceRows)
	}
	return nil
}
