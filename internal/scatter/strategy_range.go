package scatter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
)

const (
	// rangeSample is about the number of rows, and of groups, from which bounds are
	// taken: the cost of one of n ranges is off by about √(n/rangeSample).
	rangeSample = 100_000
	// countedBounds is the number of bounds up to which the rows between them are
	// counted; each costs a comparison a row.
	countedBounds = 256
)

// rangeCandidate cuts by ranges of a dimension that the local tables are sorted
// or partitioned by.
func (p *Planner) rangeCandidate(ctx context.Context, up *UnitPlan, s *survey) (candidate, error) {
	by, why := p.prunable(up, s, withoutRanges)
	if why != "" {
		return unusable(StrategyRange, "%s", why), nil
	}
	d := p.sliceDemand(up, len(p.Nodes), "nodes", up.Scan/uint64(len(p.Nodes)), s.layout.shards)
	bounds, err := p.bounds(ctx, up, s, by, d.slices)
	if err != nil {
		return candidate{}, err
	}
	if len(bounds) == 0 && d.slices > 1 {
		return unusable(StrategyRange, "%s has one value for all rows of a sample", by.name), nil
	}
	ranges := rangesOf(bounds)
	read, how, err := p.readBy(ctx, up, s, key{by}, ranges)
	if err != nil {
		return candidate{}, err
	}
	return candidate{
		Choice: Choice{Strategy: StrategyRange, Slices: len(ranges), Rows: read, Reason: how + "; ranges of equal cost, which have more groups where they have fewer rows",
			CPU: up.mergedCost(read, &s.layout)},
		why: d.reason, by: key{by}, reason: foundByKey,
		cut: func(ctx context.Context, up *UnitPlan) error { return p.cutRanges(ctx, up, ranges, bounds) },
	}, nil
}

// withoutRanges refuses a dimension whose type has no ranges.
func withoutRanges(k keyPart) string {
	if _, ok := literalOf(k.typ); !ok || k.typ.Nullable {
		return fmt.Sprintf("%s is a %s, which has no ranges", k.name, k.typ.Name)
	}
	return ""
}

// foundByKey is why slices are cut by a dimension that [Planner.prunable] gives.
const foundByKey = "the sorting or the partition key finds it"

// prunable gives the dimension by which the local tables find a slice's rows
// without reading the others: of the sorting or the partition key, the first that
// has a value for each node, or else the one with the most values.
func (p *Planner) prunable(up *UnitPlan, s *survey, refuses func(keyPart) string) (keyPart, string) {
	l := &s.layout
	if l.why != "" {
		return keyPart{}, l.why
	}
	partition, _ := clickhouse.ColumnsOf(l.partitionKey)
	why := fmt.Sprintf("%s is sorted by (%s), with no dimension of the level", l.local, strings.Join(l.sortingKey, ", "))
	var best keyPart
	for _, column := range slices.Concat(l.sortingKey, partition) {
		for i, k := range up.group() {
			expr := p.Job.Dimensions[p.Job.Levels[up.Unit.Level].Dimensions[i]].Expr
			named := p.Job.Scatter.Dimension
			if clickhouse.UnquoteName(expr) != clickhouse.UnquoteName(column) || named != "" && named != k.name {
				continue
			}
			if refused := refuses(k); refused != "" {
				why = refused
				continue
			}
			if up.Cardinality[k.name] >= uint64(len(p.Nodes)) {
				return k, ""
			}
			if best.name == "" || up.Cardinality[k.name] > up.Cardinality[best.name] {
				best = k
			}
		}
	}
	if best.name != "" {
		return best, ""
	}
	return keyPart{}, why
}

// bounds gives the values at which at most n ranges of about equal cost begin,
// but for the first, as literals in the servers' order. Rows alone would not do:
// where values are rare, a range has many more groups for its rows.
func (p *Planner) bounds(ctx context.Context, up *UnitPlan, s *survey, by keyPart, n int) ([]string, error) {
	id := weightKey{up.Unit.Period.Period, by.name}
	sample, ok := s.samples[id]
	if !ok {
		b, err := up.Builder(p.Job)
		if err != nil {
			return nil, err
		}
		lit, _ := literalOf(by.typ)
		rows, groups := max(1, up.Rows/rangeSample), max(1, up.Groups/rangeSample)
		states := float64(partialGroups(up.Groups, up.Rows, s.layout.shards)) / float64(max(1, up.Groups))
		sql := b.sampleCosts(by, lit.text, up.group(), rows, groups, aggregateCost*rows, uint64(mergeCost*states)*groups)
		if sample, err = p.counted(ctx, sql, lit); err != nil {
			return nil, fmt.Errorf("sampling %s: %w", by.name, err)
		}
		s.samples[id] = sample
	}
	var total uint64
	for _, v := range sample {
		total += v.weight
	}
	var bounds []string
	var seen uint64
	at := 0
	for i, v := range sample {
		// A value belongs where its middle lies.
		if slice := int(float64(seen+v.weight/2) / float64(max(total, 1)) * float64(n)); slice > at {
			if i > 0 {
				bounds = append(bounds, v.literal)
			}
			at = slice
		}
		seen += v.weight
	}
	return bounds, nil
}

// A countedValue is a value with the number of its rows, or what it costs.
type countedValue struct {
	literal string
	weight  uint64
}

// counted runs a query that lists values as texts with their weights.
func (p *Planner) counted(ctx context.Context, sql string, lit literal) ([]countedValue, error) {
	var values []countedValue
	err := p.ask(func(n *clickhouse.Node, gentle bool) error {
		values = nil
		return n.Rows(ctx, clickhouse.Query{ID: p.id("values"), SQL: sql, Gentle: gentle}, func(scan func(...any) error) error {
			var text string
			var weight uint64
			err := scan(&text, &weight)
			values = append(values, countedValue{lit.write(text), weight})
			return err
		})
	})
	return values, err
}

// rangesOf makes slices of bounds: the first takes all that is not at or above
// the first bound, whatever it is.
func rangesOf(bounds []string) []Slice {
	out := make([]Slice, len(bounds)+1)
	for i := range out {
		out[i] = Slice{Name: strconv.Itoa(i), BucketSet: allBuckets()}
		if i > 0 {
			out[i].From, out[i-1].To = bounds[i-1], bounds[i-1]
		}
	}
	return out
}

// cutRanges counts the rows of the ranges, or estimates them where there are many.
func (p *Planner) cutRanges(ctx context.Context, up *UnitPlan, ranges []Slice, bounds []string) error {
	up.Slices = ranges
	if len(bounds) == 0 {
		ranges[0].Rows = up.Rows
		return nil
	}
	if len(bounds) > countedBounds {
		for i := range ranges {
			ranges[i].Rows, ranges[i].Estimated = up.Rows/uint64(len(ranges)), true
		}
		return nil
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return err
	}
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		for i := range ranges {
			ranges[i].Rows = 0
		}
		q := clickhouse.Query{ID: p.id("between"), SQL: b.between(up.by[0], bounds), Gentle: gentle}
		return tally(ctx, n, q, "range", len(ranges), func(i int) *uint64 { return &ranges[i].Rows })
	})
	if err != nil {
		return fmt.Errorf("counting the rows of the ranges of %s: %w", up.Dimension, err)
	}
	up.Rows = sumRows(ranges)
	for i := range ranges {
		ranges[i].Indivisible = len(up.dims) == 1 && ranges[i].Rows > 2*up.Rows/uint64(len(ranges))
	}
	return nil
}

func sumRows(all []Slice) uint64 {
	var n uint64
	for i := range all {
		n += all[i].Rows
	}
	return n
}
