package scatter

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A Slice is one bounded query. It takes the rows for which all of these hold:
// they lie on its shard, its range or its list of values holds the value of the
// slicing dimension, and so do its hash buckets; and where one bucket is too
// much, the hash of their group has the given last bits.
type Slice struct {
	// Name numbers the slice in its unit; the halves of slice 3 are 3.0 and 3.1.
	Name string `json:"slice"`
	// Shard, if not 0, is the shard whose own table is read, by one of its
	// replicas; 0 reads the source table, on any node.
	Shard uint32 `json:"shard,omitempty"`
	// From and To are SQL literals, the first value of the slice and of the next
	// one; empty where there is no bound.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Values are the SQL literals of the slice's values. Rest says that the slice
	// takes all but them.
	Values []string `json:"values,omitempty"`
	Rest   bool     `json:"rest,omitempty"`
	BucketSet
	// Depth is the number of bits of the group's hash that are fixed, and Part
	// their value.
	Depth int    `json:"depth,omitempty"`
	Part  uint64 `json:"part,omitempty"`
	// Rows is the weight: the source rows that were counted in the slice, by the
	// plan or when it was cut.
	Rows uint64 `json:"rows"`
	// Estimated says that Rows was not counted.
	Estimated bool `json:"estimated,omitempty"`
	// Indivisible says that a group of the slice may be heavier than a slice's
	// share and cannot be cut.
	Indivisible bool `json:"indivisible,omitempty"`
	// Node is the number of the node that is first in line to run it.
	Node int    `json:"node"`
	SQL  string `json:"sql"`
	// Gentle says that the query runs with fewer threads and spills earlier.
	Gentle bool `json:"-"`

	blind int // cuts in a row of which the rows could not be counted
}

// halves cuts a slice in two, always in the same way: its buckets, or where it
// is one bucket, the groups within by one more bit of their hash. Buckets cut
// ranges and lists of values as well, whatever the type of the values.
func (s Slice) halves() [2]Slice {
	a, b := s, s
	a.Name, b.Name = s.Name+".0", s.Name+".1"
	if s.size() > 1 {
		a.BucketSet, b.BucketSet = s.BucketSet.halves()
	} else {
		a.Depth++
		b.Depth++
		b.Part |= 1 << s.Depth
	}
	return [2]Slice{a, b}
}

// Takes says in a few words what the slice takes.
func (s Slice) Takes() string {
	var parts []string
	if s.Shard != 0 {
		parts = append(parts, fmt.Sprintf("shard %d", s.Shard))
	}
	switch {
	case s.From != "" && s.To != "":
		parts = append(parts, "from "+short(s.From)+" to below "+short(s.To))
	case s.From != "":
		parts = append(parts, "from "+short(s.From))
	case s.To != "":
		parts = append(parts, "below "+short(s.To))
	case s.Rest:
		parts = append(parts, "all other values")
	case len(s.Values) > 0:
		parts = append(parts, fmt.Sprintf("%d values", len(s.Values)))
	}
	if !s.all() {
		parts = append(parts, "buckets "+s.BucketSet.String())
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

// short cuts a long literal, which has ASCII characters alone.
func short(literal string) string {
	const most = 40
	if len(literal) > most {
		return literal[:most-1] + "…"
	}
	return literal
}

// condition selects the rows of the slice.
func (up *UnitPlan) condition(s Slice) string {
	var all []string
	for _, c := range []string{up.rangeCondition(s), up.valuesCondition(s), s.BucketSet.condition(up.by.bucket(cityHash, Buckets)), up.deepCondition(s)} {
		if c != "" {
			all = append(all, c)
		}
	}
	if len(all) > 1 {
		return "(" + strings.Join(all, ") AND (") + ")"
	}
	return strings.Join(all, "")
}

// rangeCondition leaves no value out, whatever it is: what is not at or above
// a bound is below it.
func (up *UnitPlan) rangeCondition(s Slice) string {
	var all []string
	expr := "(" + up.by[0].expr + ")"
	if s.From != "" {
		all = append(all, expr+" >= "+s.From)
	}
	if s.To != "" {
		all = append(all, "NOT ("+expr+" >= "+s.To+")")
	}
	return strings.Join(all, " AND ")
}

// valuesCondition of the rest holds for NULL too, which is in no list.
func (up *UnitPlan) valuesCondition(s Slice) string {
	if len(s.Values) == 0 {
		return ""
	}
	in := "ifNull((" + up.by[0].expr + ") IN (" + strings.Join(s.Values, ", ") + "), 0)"
	if s.Rest {
		return "NOT " + in
	}
	if !up.by[0].typ.Nullable {
		return "(" + up.by[0].expr + ") IN (" + strings.Join(s.Values, ", ") + ")"
	}
	return in
}

func (up *UnitPlan) deepCondition(s Slice) string {
	if s.Depth == 0 {
		return ""
	}
	// The low bits may be those of the bucket.
	return fmt.Sprintf("bitAnd(bitShiftRight(%s, 16), %d) = %d", up.group().mix(cityHash), uint64(1)<<s.Depth-1, s.Part)
}

// deepest is the number of bits after which a slice is not split any more.
const deepest = 40

// mostBlind is how often in a row a slice is cut whose rows cannot be counted: where
// the count is over the limit by itself, cutting does not help, and doubles the work.
const mostBlind = 3

// A Splitter cuts slices that hit a limit.
type Splitter struct {
	Job   *job.Job
	Nodes []*clickhouse.Node
	// Run is in the ids of the splitter's queries.
	Run string
	Log *slog.Logger

	queries atomic.Int64
}

// Split gives what to run in place of a slice of a unit that hit a limit: its
// halves, where one holds all the rows the halves of that one, and so on; or, of
// a single group, the same slice once more with half the threads and a quarter
// of the memory before it spills. If that was the gentle attempt, the result is
// an error with the group's name. Halves that hold no rows are run all the same.
// What it has to know is asked of the node where the slice failed, and of others
// where that one fails.
func (p *Splitter) Split(ctx context.Context, node int, up *UnitPlan, s Slice, cause error) ([]Slice, error) {
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	var empty []Slice
	for {
		if s.size() == 1 {
			groups, name, err := p.groups(ctx, node, up, b, s)
			if clickhouse.KindOf(err) == clickhouse.KindLimit && s.blind < mostBlind {
				// To find out is too much as well: cut until it is not.
				groups, name, err = 2, "that could not be looked at", nil
			}
			switch {
			case err != nil:
				return nil, fmt.Errorf("looking into slice %s: %w", s.Name, err)
			case groups > 1 && s.Depth < deepest:
			case !s.Gentle:
				s.Gentle = true
				return append(empty, s), nil
			default:
				return nil, indivisible(name, cause)
			}
		}
		halves, err := p.build(ctx, node, up, b, s)
		if err != nil {
			return nil, err
		}
		switch {
		case halves[0].Rows == 0:
			empty, s = append(empty, halves[0]), halves[1]
		case halves[1].Rows == 0:
			empty, s = append(empty, halves[1]), halves[0]
		default:
			return append(empty, halves[:]...), nil
		}
	}
}

func indivisible(group string, cause error) error {
	return failure.New(failure.Source, fmt.Errorf("the group %s alone is over the limit, with half the threads too: %w", group, cause),
		"raise the limit: a single group cannot be cut; a metric with a smaller state (uniqCombined for uniqExact) may do with less")
}

// build makes the halves of a slice. The rows of the first are counted, those of
// the second are the rest: what comes is compared with them.
func (p *Splitter) build(ctx context.Context, node int, up *UnitPlan, b *Builder, s Slice) ([2]Slice, error) {
	halves := s.halves()
	nodes := nodesFor(p.Nodes, s.Shard)
	for i := range halves {
		halves[i].SQL = b.on(s.Shard, up).Group(up.condition(halves[i]))
		at := slices.Index(nodes, s.Node)
		halves[i].Node = nodes[(max(at, 0)+i)%len(nodes)]
	}
	err := p.ask(ctx, node, s, b.on(s.Shard, up).rows(up.condition(halves[0])), &halves[0].Rows)
	if clickhouse.KindOf(err) == clickhouse.KindLimit && s.blind < mostBlind {
		// To count is too much as well; what comes cannot be compared.
		for i := range halves {
			halves[i].Rows, halves[i].Estimated, halves[i].blind = s.Rows/2+1, true, s.blind+1
		}
		return halves, nil
	}
	if err != nil {
		return halves, fmt.Errorf("counting the rows of half of slice %s: %w", s.Name, err)
	}
	halves[0].Estimated, halves[0].blind, halves[1].blind = false, 0, 0
	if !s.Estimated {
		halves[1].Rows = s.Rows - min(s.Rows, halves[0].Rows)
		return halves, nil
	}
	if err := p.ask(ctx, node, s, b.on(s.Shard, up).rows(up.condition(halves[1])), &halves[1].Rows); err != nil {
		return halves, fmt.Errorf("counting the rows of half of slice %s: %w", s.Name, err)
	}
	halves[1].Estimated = false
	return halves, nil
}

// Rows counts the source rows of a slice, on a node or else on the slice's others.
func (p *Splitter) Rows(ctx context.Context, node int, up *UnitPlan, s Slice) (rows uint64, err error) {
	b, err := up.Builder(p.Job)
	if err != nil {
		return 0, err
	}
	err = p.ask(ctx, node, s, b.on(s.Shard, up).rows(up.condition(s)), &rows)
	return rows, err
}

// groups counts the groups of a slice, to two at most, and names one.
func (p *Splitter) groups(ctx context.Context, node int, up *UnitPlan, b *Builder, s Slice) (n uint64, name string, err error) {
	err = p.ask(ctx, node, s, b.on(s.Shard, up).twoGroups(up.condition(s)), &n, &name)
	return n, name, err
}

// ask runs a query of one row, gently, on a node, or else on the slice's others in turn.
func (p *Splitter) ask(ctx context.Context, node int, s Slice, sql string, dest ...any) error {
	nodes := []*clickhouse.Node{p.Nodes[node]}
	for _, i := range nodesFor(p.Nodes, s.Shard) {
		if i != node {
			nodes = append(nodes, p.Nodes[i])
		}
	}
	return inTurn(nodes, p.Log, func(n *clickhouse.Node) error {
		q := clickhouse.Query{ID: fmt.Sprintf("ck2hbase-%s-cut-%d", p.Run, p.queries.Add(1)), SQL: sql, Gentle: true}
		return n.Row(ctx, q, dest...)
	})
}

// nodesFor gives the numbers of the nodes that may run a slice: the replicas of
// its shard, or all.
func nodesFor(nodes []*clickhouse.Node, shard uint32) []int {
	var out []int
	for i, n := range nodes {
		if shard == 0 || n.Shard == shard {
			out = append(out, i)
		}
	}
	return out
}
