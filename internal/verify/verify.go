// Package verify compares what a run left in the sink with what the source
// says, by queries that share nothing with those of the run but the grouping.
package verify

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// A Verdict is the outcome of a comparison.
type Verdict string

// The verdicts. Only Match is a success.
const (
	Match      Verdict = "match"
	Mismatch   Verdict = "mismatch"
	NotChecked Verdict = "not checked"
)

// A Count is what both sides say of one unit.
type Count struct {
	// Groups is the number of groups in ClickHouse, and SourceRows the number
	// of rows in them.
	Groups, SourceRows uint64
	// Keys is the number of distinct row keys in HBase at the run's timestamp.
	Keys uint64
	// Checked says that both sides were counted to the end.
	Checked bool
}

// Verdict judges the count.
func (c Count) Verdict() Verdict {
	switch {
	case !c.Checked:
		return NotChecked
	case c.Groups == c.Keys:
		return Match
	default:
		return Mismatch
	}
}

// A Checker counts both sides of a run.
type Checker struct {
	Job   *job.Job
	Nodes []*clickhouse.Node
	Run   string
	Log   *slog.Logger
	// Scan calls fn for each distinct row key of the run, perhaps from several
	// goroutines at once. The key is valid during the call.
	Scan func(ctx context.Context, fn func(key []byte) error) error
	// Codec decodes the keys.
	Codec *rowkey.Codec
}

// part is the k-th part of a unit.
type part struct{ unit, k int }

// Groups counts the groups of each unit in ClickHouse, by a count(1) over
// slices cut by another hash function, into another number of parts, and sent
// to other nodes than the run's.
func (c *Checker) Groups(ctx context.Context, plan *scatter.Plan) ([]Count, error) {
	parts := len(c.Nodes) + 1
	if parts == 2 {
		parts = 1 // one node: a second scan would tell no more
	}
	counts := make([]Count, len(plan.Units))
	groups := make([]atomic.Uint64, len(plan.Units))
	rows := make([]atomic.Uint64, len(plan.Units))
	var tasks []scatter.Task[part]
	for u := range plan.Units {
		for k := range parts {
			tasks = append(tasks, scatter.Task[part]{
				Work: part{u, k}, Node: (k + 1) % len(c.Nodes), Weight: plan.Units[u].Rows,
			})
		}
	}
	e := scatter.Executor[part]{Nodes: len(c.Nodes), PerNode: c.Job.Scatter.PerNode, Attempts: 3, Pause: time.Second, Log: c.Log}
	err := e.Run(ctx, tasks, func(ctx context.Context, node int, t part, attempt int) error {
		n, m, err := c.countPart(ctx, c.Nodes[node], &plan.Units[t.unit], t.k, parts, attempt)
		if err != nil {
			return err
		}
		groups[t.unit].Add(n)
		rows[t.unit].Add(m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("counting in ClickHouse: %w", err)
	}
	for u := range counts {
		counts[u] = Count{Groups: groups[u].Load(), SourceRows: rows[u].Load()}
	}
	return counts, nil
}

func (c *Checker) countPart(ctx context.Context, n *clickhouse.Node, up *scatter.UnitPlan, k, parts, attempt int) (groups, rows uint64, err error) {
	b, err := up.Builder(c.Job)
	if err != nil {
		return 0, 0, err
	}
	id := fmt.Sprintf("ck2hbase-%s-verify-%s-%s-%d-%d", c.Run, up.Level, up.Period, k, attempt)
	sql := b.Count(up.CheckCondition(k, parts))
	err = n.Row(ctx, clickhouse.Query{ID: id, SQL: sql}, &groups, &rows)
	return groups, rows, err
}

// Keys adds the number of keys in HBase to the counts of the same units.
func (c *Checker) Keys(ctx context.Context, plan *scatter.Plan, counts []Count) error {
	type id struct {
		level  int
		period job.Period
	}
	units := map[id]int{}
	for i := range plan.Units {
		u := plan.Units[i].Unit
		units[id{u.Level, u.Period.Period}] = i
	}
	keys := make([]atomic.Uint64, len(counts))
	err := c.Scan(ctx, func(key []byte) error {
		k, err := c.Codec.Decode(key)
		if err != nil {
			return failure.Errorf(failure.Mismatch, "a row of this run has a key that it cannot have: %w", err)
		}
		i, ok := units[id{k.Level, k.Period}]
		if !ok {
			return failure.Errorf(failure.Mismatch, "row key %q belongs to no level and period of this run", key)
		}
		keys[i].Add(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("counting in HBase: %w", err)
	}
	for i := range counts {
		counts[i].Keys = keys[i].Load()
		counts[i].Checked = true
	}
	return nil
}
