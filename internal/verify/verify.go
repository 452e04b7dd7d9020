// Package verify compares what a run left in the sink with what the source
// says, by queries that share nothing with those of the run but the grouping.
package verify

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
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
	// Written are the cells that were sent and acknowledged, and There those in HBase;
	// nil where only rows are counted.
	Written, There *Contents
}

// Contents are what the cells of many rows sum up to.
type Contents struct {
	Cells uint64
	Sums  *checksum.Table
}

func (c *Contents) equal(o *Contents) bool { return c.Cells == o.Cells && *c.Sums == *o.Sums }

// Verdict judges the count.
func (c Count) Verdict() Verdict {
	switch {
	case !c.Checked, c.Written != nil && c.There == nil:
		return NotChecked
	case c.Groups != c.Keys, c.Written != nil && !c.Written.equal(c.There):
		return Mismatch
	default:
		return Match
	}
}

// String says what both sides have.
func (c Count) String() string {
	s := fmt.Sprintf("%d groups in ClickHouse, %d row keys in HBase", c.Groups, c.Keys)
	if c.Written != nil && c.There != nil && c.Groups == c.Keys {
		s = fmt.Sprintf("%d cells with checksum %s from ClickHouse, %d with %s in HBase", c.Written.Cells, c.Written.Sums.Total(), c.There.Cells, c.There.Sums.Total())
	}
	return s
}

// A Checker counts both sides of a run.
type Checker struct {
	Job   *job.Job
	Nodes []*clickhouse.Node
	Run   string
	Log   *slog.Logger
	// Scan calls fn for each distinct row key of the run, perhaps from several
	// goroutines at once, with the cells if contents are to be checked, too. Both
	// are valid during the call.
	Scan func(ctx context.Context, fn func(key []byte, cells []hbase.CellView) error) error
	// Codec decodes the keys.
	Codec *rowkey.Codec
}

// A part is the k-th of n parts of a unit.
type part struct{ unit, k, n int }

// mostCuts is how often a part is cut in two that hit a limit. Each cut reads all
// rows once more; where that alone is over the limit, cutting does not help.
const mostCuts = 5

// Groups counts the groups of each unit in ClickHouse, by a count() over all of
// them, or over parts that are cut by another hash function than the run's slices
// and sent to other nodes. A part that hits a limit of the job's is cut in two.
func (c *Checker) Groups(ctx context.Context, plan *scatter.Plan) ([]Count, error) {
	counts := make([]Count, len(plan.Units))
	groups := make([]atomic.Uint64, len(plan.Units))
	rows := make([]atomic.Uint64, len(plan.Units))
	var tasks []scatter.Task[part]
	begun := make([]int, len(plan.Units)) // the number of parts before any was cut
	for u := range plan.Units {
		begun[u] = plan.Units[u].CheckParts(len(c.Nodes), clickhouse.Shards(c.Nodes), c.Job.Limits.MaxMemoryUsage)
		for k := range begun[u] {
			tasks = append(tasks, c.task(plan, part{u, k, begun[u]}))
		}
	}
	e := scatter.Executor[part]{
		Nodes: len(c.Nodes), PerNode: c.Job.Scatter.PerNode, Total: c.Job.Scatter.Parallel, Attempts: 3, Pause: time.Second, Log: c.Log,
		Split: func(_ context.Context, _ int, t part, err error) ([]scatter.Task[part], error) {
			if t.n >= begun[t.unit]<<mostCuts {
				return nil, err
			}
			c.Log.Warn("a count hit a limit and is cut", "part", t.k, "of", t.n, "error", err)
			return []scatter.Task[part]{c.task(plan, part{t.unit, t.k, 2 * t.n}), c.task(plan, part{t.unit, t.k + t.n, 2 * t.n})}, nil
		},
	}
	err := e.Run(ctx, tasks, func(ctx context.Context, node int, t part, attempt int) error {
		n, m, err := c.countPart(ctx, c.Nodes[node], &plan.Units[t.unit], t, attempt)
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

func (c *Checker) task(plan *scatter.Plan, p part) scatter.Task[part] {
	return scatter.Task[part]{Work: p, Node: (p.unit + p.k + 1) % len(c.Nodes), Weight: plan.Units[p.unit].Rows}
}

func (c *Checker) countPart(ctx context.Context, n *clickhouse.Node, up *scatter.UnitPlan, p part, attempt int) (groups, rows uint64, err error) {
	b, err := up.Builder(c.Job)
	if err != nil {
		return 0, 0, err
	}
	id := fmt.Sprintf("ck2hbase-%s-verify-%s-%s-%d.%d-%d", c.Run, up.Level, up.Period, p.k, p.n, attempt)
	err = n.Row(ctx, clickhouse.Query{ID: id, SQL: b.Count(up.CheckCondition(p.k, p.n))}, &groups, &rows)
	return groups, rows, err
}

// Keys adds the number of keys in HBase to the counts of the same units, and
// what their cells sum up to where it is known what was written.
func (c *Checker) Keys(ctx context.Context, plan *scatter.Plan, counts []Count) error {
	unitOf := unitsOf(c.Codec, plan)
	tallies := make([]tally, len(counts))
	for i := range counts {
		if counts[i].Written != nil {
			tallies[i].contents.Sums = new(checksum.Table)
		}
	}
	hashers := sync.Pool{New: func() any { return new(checksum.Hasher) }}
	err := c.Scan(ctx, func(key []byte, cells []hbase.CellView) error {
		i, err := unitOf(key)
		if err != nil {
			return err
		}
		if counts[i].Written == nil {
			tallies[i].keys.Add(1)
			return nil
		}
		h := hashers.Get().(*checksum.Hasher)
		defer hashers.Put(h)
		tallies[i].add(h, key, cells)
		return nil
	})
	if err != nil {
		return fmt.Errorf("counting in HBase: %w", err)
	}
	for i := range counts {
		counts[i].Keys = tallies[i].keys.Load()
		counts[i].Checked = true
		if counts[i].Written != nil {
			counts[i].There = &tallies[i].contents
		}
	}
	return nil
}

// A tally counts what is there of a unit.
type tally struct {
	keys atomic.Uint64

	mu       sync.Mutex
	contents Contents
}

func (t *tally) add(h *checksum.Hasher, key []byte, cells []hbase.CellView) {
	t.keys.Add(1)
	bucket := h.Row(key)
	var sum checksum.Sum
	for _, c := range cells {
		sum.Add(h.Cell(c.Family, c.Qualifier, c.Value))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contents.Cells += uint64(len(cells))
	t.contents.Sums[bucket].Add(sum)
}

// unitsOf finds the unit of a plan that a key belongs to. A key that belongs to none is
// a mismatch: the timestamps that are scanned are the run's alone.
func unitsOf(codec *rowkey.Codec, plan *scatter.Plan) func(key []byte) (int, error) {
	type id struct {
		level  int
		period job.Period
	}
	units := map[id]int{}
	for i := range plan.Units {
		u := plan.Units[i].Unit
		units[id{u.Level, u.Period.Period}] = i
	}
	return func(key []byte) (int, error) {
		k, err := codec.Decode(key)
		if err != nil {
			return 0, failure.Errorf(failure.Mismatch, "a row of this run has a key that it cannot have: %w", err)
		}
		i, ok := units[id{k.Level, k.Period}]
		if !ok {
			return 0, failure.Errorf(failure.Mismatch, "row key %q belongs to no level and period of this run", key)
		}
		return i, nil
	}
}
