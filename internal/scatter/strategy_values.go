package scatter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// valuesText bounds the text of all values in bytes: a server takes queries up
// to 256 KiB, and the one that an initiator sends to the shards is longer than its own.
const valuesText = 64 << 10

// valuesCandidate cuts by lists of values, where the local tables find them and
// they have no ranges. Whatever is in no list goes to one more slice.
func (p *Planner) valuesCandidate(ctx context.Context, up *UnitPlan, s *survey) (candidate, error) {
	forced := p.Job.Scatter.Strategy == string(StrategyValues)
	by, why := p.prunable(up, s, func(k keyPart) string {
		if _, ok := valueLiteral(k.typ); !ok {
			return fmt.Sprintf("%s is a %s, which has no lists", k.name, k.typ.Name)
		}
		if _, ok := literalOf(k.typ); ok && !k.typ.Nullable && !forced {
			return "ranges do the same with shorter queries"
		}
		return ""
	})
	reason := foundByKey
	if why != "" && forced {
		by, why = p.listable(up)
		reason = "it has the most values of those that can be listed"
	}
	if why != "" {
		return unusable(StrategyValues, "%s", why), nil
	}
	lit, _ := valueLiteral(by.typ)
	b, err := up.Builder(p.Job)
	if err != nil {
		return candidate{}, err
	}
	const most = valuesText / 2 // of one digit and a comma
	if n := up.Cardinality[by.name]; n > most {
		return unusable(StrategyValues, "the about %d values of %s do not fit into a query", n, by.name), nil
	}
	values, err := p.counted(ctx, b.values(by, lit.text, most), lit)
	if err != nil {
		return candidate{}, fmt.Errorf("listing the values of %s: %w", by.name, err)
	}
	length := 0
	for _, v := range values {
		length += len(v.literal) + 2
	}
	if length > valuesText || len(values) == most || len(values) == 0 {
		return unusable(StrategyValues, "the %d values of %s do not fit into a query", len(values), by.name), nil
	}
	return p.valuesCost(ctx, up, s, by, reason, values)
}

// listable gives the dimension with the most values of those that have lists.
func (p *Planner) listable(up *UnitPlan) (keyPart, string) {
	all := slices.DeleteFunc(up.group(), func(k keyPart) bool {
		_, ok := valueLiteral(k.typ)
		named := p.Job.Scatter.Dimension
		return !ok || named != "" && named != k.name
	})
	if len(all) == 0 {
		return keyPart{}, "no dimension of the level has a type whose values can be listed"
	}
	return slices.MaxFunc(all, func(a, b keyPart) int { return cmp.Compare(up.Cardinality[a.name], up.Cardinality[b.name]) }), ""
}

// valueLiteral is as literalOf; names of an Enum can be listed too.
func valueLiteral(t row.Type) (literal, bool) {
	if strings.HasPrefix(t.Base, "Enum") {
		return literal{"toString(%s)", quoteBytes}, true
	}
	if t.Kind == row.Decimal && t.Nullable {
		return literal{}, false // 18.16 takes no Decimal for IN with a Nullable
	}
	return literalOf(t)
}

func (p *Planner) valuesCost(ctx context.Context, up *UnitPlan, s *survey, by keyPart, reason string, values []countedValue) (candidate, error) {
	d := p.sliceDemand(up, len(p.Nodes), "nodes", up.Scan/uint64(len(p.Nodes)), s.layout.shards)
	n := min(d.slices, len(values))
	cut := listsOf(values, n, up.Rows)
	read, how, err := p.readBy(ctx, up, s, key{by}, cut)
	if err != nil {
		return candidate{}, err
	}
	return candidate{
		Choice: Choice{Strategy: StrategyValues, Slices: len(cut), Rows: read, Reason: how,
			CPU: up.mergedCost(read, &s.layout)},
		why: d.reason, by: key{by}, reason: reason,
		cut: func(_ context.Context, up *UnitPlan) error {
			up.Slices = cut
			return nil
		},
	}, nil
}

// listsOf deals values to n lists of about equal weight, and makes one more
// slice of what is in none of them.
func listsOf(values []countedValue, n int, total uint64) []Slice {
	weights := make([]uint64, len(values))
	order := make([]int, len(values))
	for i, v := range values {
		weights[i], order[i] = v.weight, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	out := make([]Slice, 0, n+1)
	var all []string
	var listed uint64
	for _, h := range deal(weights, order, n) {
		s := Slice{Name: strconv.Itoa(len(out)), BucketSet: allBuckets(), Rows: h.load}
		for _, i := range h.heavy {
			s.Values = append(s.Values, values[i].literal)
		}
		out = append(out, s)
		all = append(all, s.Values...)
		listed += h.load
	}
	return append(out, Slice{Name: strconv.Itoa(len(out)), BucketSet: allBuckets(), Values: all, Rest: true, Rows: total - min(total, listed)})
}
