package scatter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// What a server's CPU takes, in nanoseconds: measured with the traffic job on
// 26.9 and 18.16 (benchmarks/RESULTS.md has the figures). Machines and metrics
// differ; what is compared are the ratios of strategies for the same job.
const (
	// scanCost is reading a row and finding out that it is another slice's.
	scanCost = 30
	// aggregateCost is adding a row to its group.
	aggregateCost = 250
	// mergeCost is sending the state of a group to the initiator and merging it.
	mergeCost = 1000
)

// cpuSeconds estimates the CPU time of slices that read rows together, of which
// the unit's own are aggregated, and whose groups are merged from partial states.
func cpuSeconds(read, own, partial uint64) float64 {
	return (scanCost*float64(read) + aggregateCost*float64(own) + mergeCost*float64(partial)) / 1e9
}

// partialGroups estimates the states that the shards send: a group of k rows
// strewn over n shards is on n·(1-(1-1/n)^k) of them.
func partialGroups(groups, rows uint64, shards int) uint64 {
	if shards < 2 || groups == 0 {
		return 0
	}
	k, n := float64(rows)/float64(groups), float64(shards)
	return uint64(float64(groups) * n * (1 - math.Pow(1-1/n, k)))
}

// A state's size in bytes, on the safe side: a wrong one costs a slice more, or
// one that is cut when it hits the limit.
const (
	groupBytes  = 64      // the keys and the place in the hash table
	stateBytes  = 24      // sum, count, min, avg …
	perRowBytes = 32      // of what keeps each value
	sketchBytes = 1 << 16 // of what keeps a sketch, at most
)

// keeping are aggregate functions whose state grows with the group's rows, and
// sketching those for which it does so up to a bound.
var (
	keeping   = regexp.MustCompile(`(?i)\b(uniqExact|groupArray|groupUniqArray|groupBitmap|quantiles?Exact|medianExact|topK|sumMap)\w*\s*\(`)
	sketching = regexp.MustCompile(`(?i)\b(uniq|quantile|median)\w*\s*\(`)
)

// bytesPerGroup estimates the aggregation's state of a group with so many rows.
func bytesPerGroup(metrics []job.Metric, rowsPerGroup float64) float64 {
	total := float64(groupBytes)
	for _, m := range metrics {
		switch {
		case keeping.MatchString(m.Expr):
			total += perRowBytes * math.Max(rowsPerGroup, 1)
		case sketching.MatchString(m.Expr):
			total += math.Min(perRowBytes*math.Max(rowsPerGroup, 1), sketchBytes)
		default:
			total += stateBytes
		}
	}
	return total
}

// A demand says how many slices the limits ask for.
type demand struct {
	slices int
	reason string
}

// sliceDemand gives the least number of slices with which each is expected to
// stay within half of the limits: estimates are off, and a slice that is cut
// was computed in vain. floor is the number of nodes, or of shards, that are
// to have something to do. read is what one slice reads at least, however many
// there are.
func (p *Planner) sliceDemand(up *UnitPlan, floor int, of string, read uint64, shards int) demand {
	d := demand{floor, fmt.Sprintf("one for each of %d %s", floor, of)}
	if n := p.Job.Scatter.Slices; n > 0 {
		return demand{n, "scatter.slices"}
	}
	state := float64(up.Groups) * bytesPerGroup(p.Job.Metrics, float64(up.Rows)/float64(max(up.Groups, 1)))
	memory := float64(p.Job.Limits.MaxMemoryUsage) / 2
	if n := ceil(state / memory); n > d.slices {
		d = demand{n, fmt.Sprintf("the states of about %d groups take %.1f GB, half of max_memory_usage is %.1f GB", up.Groups, state/1e9, memory/1e9)}
	}
	limit := p.Job.Limits.MaxExecutionTime.Seconds() / 2
	scan := scanCost * float64(read) / float64(shards) / 1e9
	work := (aggregateCost*float64(up.Rows)/float64(shards) + mergeCost*float64(partialGroups(up.Groups, up.Rows, shards))) / 1e9
	if scan < limit {
		if n := ceil(work / (limit - scan)); n > d.slices {
			d = demand{n, fmt.Sprintf("about %.0f CPU seconds of aggregation, half of max_execution_time is %v", work, time.Duration(limit*float64(time.Second)))}
		}
	} else {
		d.reason += fmt.Sprintf("; reading %d rows alone may take %.0f s, more than half of max_execution_time", read, scan)
	}
	// More slices than groups would be empty.
	if most := int(min(max(up.Groups, 1), maxSlices)); d.slices > most {
		d.slices = most
		d.reason += fmt.Sprintf("; at most %d are of use", most)
	}
	return d
}

// CheckParts is the number of parts in which the unit's groups are best counted
// on so many nodes: each part reads all rows, on all nodes at once, and merges its
// groups on one node. It is at most one more than there are nodes, unless the
// groups of a part would take more than half of the memory that a query may use.
func (up *UnitPlan) CheckParts(nodes, shards int, memory int64) int {
	read := scanCost * float64(max(1, up.Scan))
	merge := mergeCost * float64(partialGroups(up.Groups, up.Rows, shards))
	quickest := min(ceil(math.Sqrt(merge*float64(nodes)/read)), nodes+1)
	needed := ceil(groupBytes * float64(up.Groups) / (float64(memory) / 2))
	return max(1, quickest, needed)
}

// maxSlices bounds the slices of a unit: beyond it each has a bucket or two.
const maxSlices = Buckets / 4

func ceil(x float64) int { return int(math.Ceil(math.Min(x, Buckets))) }

// scaleDistinct estimates the distinct values in other rows than were counted:
// what hardly repeats grows with the rows, what repeats often stays.
func scaleDistinct(values, counted, rows uint64) uint64 {
	if counted == 0 || values == 0 {
		return min(values, rows)
	}
	exponent := math.Min(1, float64(values)/float64(counted))
	scaled := float64(values) * math.Pow(float64(rows)/float64(counted), exponent)
	return min(uint64(math.Round(scaled)), rows)
}

// estimateQueries bounds the slices, and estimateShards the shards, that are
// asked for what they would read; the others are taken to be alike. Where the
// rows must be read to know, countQueries slices are.
const (
	estimateQueries = 8
	estimateShards  = 3
	countQueries    = 3
)

// readBy estimates what slices that are cut by a key read together.
func (p *Planner) readBy(ctx context.Context, up *UnitPlan, s *survey, by key, cut []Slice) (rows uint64, how string, err error) {
	planned := *up
	planned.by = by
	conditions := make([]string, len(cut))
	for i, c := range cut {
		conditions[i] = planned.condition(c)
	}
	return p.rowsRead(ctx, &planned, &s.layout, conditions)
}

// rowsRead estimates what queries under conditions read from all shards.
func (p *Planner) rowsRead(ctx context.Context, up *UnitPlan, l *layout, conditions []string) (rows uint64, how string, err error) {
	rows, err = average(conditions, estimateQueries, func(c string) (uint64, error) { return p.explain(ctx, up, l, c) })
	if !errors.Is(err, errNoEstimate) {
		return rows, "EXPLAIN ESTIMATE of slices", err
	}
	rows, err = average(conditions, countQueries, func(c string) (uint64, error) { return p.countReading(ctx, up, c) })
	return rows, "slices counted, since this server has no EXPLAIN ESTIMATE", err
}

// average asks for at most so many of the conditions, from the first to the
// last, and gives what all of them come to.
func average(conditions []string, most int, ask func(condition string) (uint64, error)) (uint64, error) {
	n := min(len(conditions), most)
	var sum uint64
	for i := range n {
		rows, err := ask(conditions[i*(len(conditions)-1)/max(1, n-1)])
		if err != nil {
			return 0, err
		}
		sum += rows
	}
	return sum * uint64(len(conditions)) / uint64(max(n, 1)), nil
}

var errNoEstimate = errors.New("the server cannot estimate")

// estimateSince is the version from which on EXPLAIN ESTIMATE is there.
const estimateSince = 22

// explain asks some shards what a query would read of their tables.
func (p *Planner) explain(ctx context.Context, up *UnitPlan, l *layout, condition string) (uint64, error) {
	if l.local == "" {
		return 0, errNoEstimate
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return 0, err
	}
	local := b.reading(l.local)
	shards := p.shards()
	asked := shards[:min(len(shards), estimateShards)]
	var rows uint64
	for _, nodes := range asked {
		n := nodes[0]
		if majorVersion(n.Version) < estimateSince {
			return 0, errNoEstimate
		}
		q := clickhouse.Query{ID: p.id("estimate"), SQL: "EXPLAIN ESTIMATE " + local.groups(condition)}
		err := n.Rows(ctx, q, func(scan func(...any) error) error {
			var database, table string
			var parts, estimated, marks uint64
			err := scan(&database, &table, &parts, &estimated, &marks)
			rows += estimated
			return err
		})
		if err != nil {
			p.Log.Debug("no estimate", "node", n.Addr, "error", err)
			return 0, errNoEstimate
		}
	}
	return rows * uint64(len(shards)) / uint64(len(asked)), nil
}

// countReading runs a count and takes the rows that it read.
func (p *Planner) countReading(ctx context.Context, up *UnitPlan, condition string) (uint64, error) {
	b, err := up.Builder(p.Job)
	if err != nil {
		return 0, err
	}
	_, read, err := p.count(ctx, b.rows(condition))
	return read, err
}

// count runs a query that counts, and gives with its result the rows that the
// servers have read for it.
func (p *Planner) count(ctx context.Context, sql string) (rows, read uint64, err error) {
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		var progress atomic.Uint64
		q := clickhouse.Query{ID: p.id("count"), SQL: sql, Gentle: gentle, Progress: func(r, _ uint64) { progress.Add(r) }}
		err := n.Row(ctx, q, &rows)
		read = progress.Load()
		return err
	})
	// A count may be answered without reading.
	return rows, max(rows, read), err
}

func majorVersion(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n := 0
	for _, c := range major {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}
