package scatter

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A Slice is one bounded query. It takes the rows of a range of hash buckets
// of the slicing dimension, and where one bucket is too much, of those the rows
// whose groups hash into one of 2^Depth parts.
type Slice struct {
	// Name numbers the slice in its unit; the halves of slice 3 are 3.0 and 3.1.
	Name string `json:"slice"`
	// Lo and Hi are the first and the last hash bucket of the slice.
	Lo int `json:"first_bucket"`
	Hi int `json:"last_bucket"`
	// Depth is the number of bits of the group's hash that are fixed, and Part
	// their value.
	Depth int    `json:"depth,omitempty"`
	Part  uint64 `json:"part,omitempty"`
	// Rows is the weight: the source rows that were counted in the slice, by the
	// plan or when it was cut.
	Rows uint64 `json:"rows"`
	// Node is the number of the node that is first in line to run it.
	Node int    `json:"node"`
	SQL  string `json:"sql"`
	// Gentle says that the query runs with fewer threads and spills earlier.
	Gentle bool `json:"-"`
}

// halves cuts a slice in two, always in the same way: the range of buckets, or
// where it is one bucket, the groups within by one more bit of their hash.
func (s Slice) halves() [2]Slice {
	a, b := s, s
	a.Name, b.Name = s.Name+".0", s.Name+".1"
	if s.Lo < s.Hi {
		middle := s.Lo + (s.Hi-s.Lo)/2
		a.Hi, b.Lo = middle, middle+1
	} else {
		a.Depth++
		b.Depth++
		b.Part |= 1 << s.Depth
	}
	return [2]Slice{a, b}
}

// condition selects the rows of the slice.
func (up *UnitPlan) condition(s Slice) string {
	c := sliceCondition(up.SliceBy, up.SliceType, s.Lo, s.Hi)
	if s.Depth == 0 {
		return c
	}
	hashes := make([]string, len(up.dims))
	for i, d := range up.dims {
		hashes[i] = notNull(CityHash, d.Expr, up.Columns[i].Type)
	}
	deep := fmt.Sprintf("bitAnd(cityHash64(%s), %d) = %d", strings.Join(hashes, ", "), uint64(1)<<s.Depth-1, s.Part)
	return "(" + c + ") AND (" + deep + ")"
}

// deepest is the number of bits after which a slice is not split any more.
const deepest = 40

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
func (p *Splitter) Split(ctx context.Context, up *UnitPlan, s Slice, cause error) ([]Slice, error) {
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	var empty []Slice
	for {
		if s.Lo == s.Hi {
			groups, name, err := p.groups(ctx, b, up.condition(s))
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
		halves, err := p.build(ctx, up, b, s)
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
func (p *Splitter) build(ctx context.Context, up *UnitPlan, b *Builder, s Slice) ([2]Slice, error) {
	halves := s.halves()
	for i := range halves {
		halves[i].SQL = b.Group(up.condition(halves[i]))
		halves[i].Node = (halves[i].Node + i) % len(p.Nodes)
	}
	if err := p.ask(ctx, b.rows(up.condition(halves[0])), &halves[0].Rows); err != nil {
		return halves, fmt.Errorf("counting the rows of half of slice %s: %w", s.Name, err)
	}
	halves[1].Rows = s.Rows - min(s.Rows, halves[0].Rows)
	return halves, nil
}

// groups counts the groups under a condition, to two at most, and names one.
func (p *Splitter) groups(ctx context.Context, b *Builder, condition string) (n uint64, name string, err error) {
	err = p.ask(ctx, b.twoGroups(condition), &n, &name)
	return n, name, err
}

// ask runs a query of one row, gently, on the nodes in turn until one answers.
func (p *Splitter) ask(ctx context.Context, sql string, dest ...any) error {
	return inTurn(p.Nodes, p.Log, func(n *clickhouse.Node) error {
		q := clickhouse.Query{ID: fmt.Sprintf("ck2hbase-%s-cut-%d", p.Run, p.queries.Add(1)), SQL: sql, Gentle: true}
		return n.Row(ctx, q, dest...)
	})
}
