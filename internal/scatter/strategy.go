package scatter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A candidate is a strategy that can be used, with its cost; cut makes its slices.
type candidate struct {
	Choice
	why string // the reason for the number of slices
	by  key
	// reason says why by is what slices are cut by.
	reason string
	cut    func(ctx context.Context, up *UnitPlan) error
}

// unusable says why a strategy cannot be used.
func unusable(s Strategy, format string, args ...any) candidate {
	return candidate{Choice: Choice{Strategy: s, Reason: fmt.Sprintf(format, args...)}}
}

func (c *candidate) usable() bool { return c.cut != nil }

// clearly is how much cheaper another strategy must be than hash, which assumes
// nothing, to be taken.
const clearly = 0.95

// decide finds the costs of all strategies, takes the cheapest, and cuts.
func (p *Planner) decide(ctx context.Context, up *UnitPlan, s *survey) error {
	all, err := p.candidates(ctx, up, s)
	if err != nil {
		return err
	}
	best := -1
	for i := range all {
		c := &all[i]
		switch {
		case p.Job.Scatter.Strategy != "":
			if string(c.Strategy) == p.Job.Scatter.Strategy {
				best = i
			}
		case !c.usable():
		case best < 0, c.CPU < all[best].CPU*clearly:
			best = i
		}
	}
	if !all[best].usable() {
		return p.Job.ErrorAt("scatter.strategy", failure.New(failure.Preflight,
			fmt.Errorf("level %s, period %s cannot be cut by %s: %s", up.Level, up.Period, all[best].Strategy, all[best].Reason),
			"take strategy: auto, or hash, which is always right"))
	}
	all[best].Chosen = true
	for i := range all {
		up.Choices = append(up.Choices, all[i].Choice)
	}
	slices.SortStableFunc(up.Choices, func(a, b Choice) int { return rank(a.Strategy) - rank(b.Strategy) })
	up.Strategy, up.by, up.Reason, up.Count = all[best].Strategy, all[best].by, all[best].reason, all[best].why
	up.Dimension = up.by.names()
	return all[best].cut(ctx, up)
}

func rank(s Strategy) int {
	return slices.Index([]Strategy{StrategyLocal, StrategyRange, StrategyValues, StrategyHash}, s)
}

// candidates looks at the strategies; hash, to which others are compared, is
// first. To look at one may cost reading all rows: those that cannot be taken are
// left out.
func (p *Planner) candidates(ctx context.Context, up *UnitPlan, s *survey) ([]candidate, error) {
	hash, err := p.hashCandidate(up, s)
	if err != nil {
		return nil, err
	}
	all := []candidate{hash}
	cheapest := hash.CPU
	scannedOnce := up.mergedCost(up.Scan, &s.layout)
	for _, other := range []struct {
		strategy Strategy
		// least is what it costs if each row is read once, and the shards send the states of all groups.
		least float64
		look  func(context.Context, *UnitPlan, *survey) (candidate, error)
	}{
		{StrategyLocal, cpuSeconds(up.Scan, up.Rows, 0), p.localCandidate},
		{StrategyRange, scannedOnce, p.rangeCandidate},
		{StrategyValues, scannedOnce, p.valuesCandidate},
	} {
		if forced := p.Job.Scatter.Strategy; forced != "" && forced != string(other.strategy) {
			all = append(all, unusable(other.strategy, "not looked at: the job file says %s", forced))
			continue
		} else if forced == "" && other.least >= cheapest*clearly {
			all = append(all, unusable(other.strategy, "not looked at: it takes %.1f CPU seconds at the least", other.least))
			continue
		}
		c, err := other.look(ctx, up, s)
		if clickhouse.KindOf(err) == clickhouse.KindLimit {
			// Finding out is too much under the job's limits.
			c, err = unusable(other.strategy, "%v", err), nil
		}
		if err != nil {
			return nil, err
		}
		if c.usable() && c.CPU < cheapest*clearly {
			cheapest = c.CPU
		}
		all = append(all, c)
	}
	return all, nil
}

// mergedCost is the cost of slices that read so many rows, and whose groups are
// merged from the states of all shards.
func (up *UnitPlan) mergedCost(read uint64, l *layout) float64 {
	return cpuSeconds(read, up.Rows, partialGroups(up.Groups, up.Rows, l.shards))
}

// hashCandidate cuts by the dimension of highest cardinality.
func (p *Planner) hashCandidate(up *UnitPlan, s *survey) (candidate, error) {
	d := p.sliceDemand(up, len(p.Nodes), "nodes", up.Scan, s.layout.shards)
	by, reason, err := p.chooseKey(up, d.slices)
	if err != nil {
		return candidate{}, err
	}
	read := up.Scan * uint64(d.slices)
	return candidate{
		Choice: Choice{Strategy: StrategyHash, Slices: d.slices, Rows: read,
			CPU:    up.mergedCost(read, &s.layout),
			Reason: fmt.Sprintf("each slice reads the %d rows of the unit", up.Scan)},
		why: d.reason, by: by, reason: reason,
		cut: func(ctx context.Context, up *UnitPlan) error { return p.cutHash(ctx, up, s, d.slices) },
	}, nil
}

// chooseKey picks what to cut by among the dimensions of the level: any of
// them is right, since slices must keep the rows of a group together; the one
// with the most values cuts most evenly. Where it has fewer values than there are
// slices, more dimensions join it.
func (p *Planner) chooseKey(up *UnitPlan, slicesWanted int) (key, string, error) {
	all := up.group()
	if want := p.Job.Scatter.Dimension; want != "" {
		i := slices.IndexFunc(all, func(k keyPart) bool { return k.name == want })
		if i < 0 {
			return nil, "", failure.New(failure.Usage,
				fmt.Errorf("scatter.dimension %q is not a dimension of level %q", want, up.Level),
				"slices must be cut by a dimension that the level groups by: name one that all levels have, or leave it out")
		}
		if values := up.Cardinality[want]; values < uint64(min(slicesWanted, len(p.Nodes))) && values < up.Groups && values > 0 && up.Sampled == 0 {
			return nil, "", p.Job.ErrorAt("scatter.dimension", failure.New(failure.Preflight,
				fmt.Errorf("%s has about %d values for %d nodes: most of them would have nothing to do", want, values, len(p.Nodes)),
				"name a dimension with more values, or take dimension: auto"))
		}
		return key{all[i]}, "named by scatter.dimension", nil
	}
	slices.SortStableFunc(all, func(a, b keyPart) int { return cmp.Compare(up.Cardinality[b.name], up.Cardinality[a.name]) })
	n, values := 1, up.Cardinality[all[0].name]
	for n < len(all) && values < uint64(slicesWanted) {
		values *= max(1, up.Cardinality[all[n].name])
		n++
	}
	if n > 1 {
		return all[:n], fmt.Sprintf("%s alone has about %d values for %d slices", all[0].name, up.Cardinality[all[0].name], slicesWanted), nil
	}
	return all[:1], "highest cardinality of the level", nil
}

func (p *Planner) cutHash(ctx context.Context, up *UnitPlan, s *survey, n int) error {
	weights, err := p.weights(ctx, up, s)
	if clickhouse.KindOf(err) == clickhouse.KindLimit {
		p.Log.Warn("the rows could not be counted by bucket within the limits", "level", up.Level, "period", up.Period, "error", err)
		for i := range n {
			up.Slices = append(up.Slices, Slice{Name: strconv.Itoa(i), Rows: up.Rows / uint64(n), Estimated: true, BucketSet: evenBuckets(i, n)})
		}
		return nil
	}
	if err != nil {
		return err
	}
	filled := 0
	up.Rows = 0
	for _, w := range weights {
		up.Rows += w
		if w > 0 {
			filled++
		}
	}
	// Where there seem to be no rows, one slice asks for all of them: a plan
	// decides how the work is cut, not whether there is any.
	n = max(1, min(n, filled))
	for i, parcel := range pack(weights, n) {
		up.Slices = append(up.Slices, Slice{Name: strconv.Itoa(i), BucketSet: parcel.set, Rows: parcel.rows,
			Indivisible: n > 1 && parcel.rows > up.Rows/uint64(n)*2 && len(up.by) == len(up.dims)})
	}
	return nil
}

// weights counts rows by bucket; levels of one period that are cut by the same
// share the counts.
func (p *Planner) weights(ctx context.Context, up *UnitPlan, s *survey) ([]uint64, error) {
	id := weightKey{up.Unit.Period.Period, up.Dimension}
	if w, ok := s.weights[id]; ok {
		return w, nil
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	var weights []uint64
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		weights = make([]uint64, Buckets)
		q := clickhouse.Query{ID: p.id("weights-" + up.Level + "-" + up.Period), SQL: b.weights(up.by), Gentle: gentle}
		return tally(ctx, n, q, "bucket", len(weights), func(bucket int) *uint64 { return &weights[bucket] })
	})
	if err != nil {
		return nil, fmt.Errorf("counting the rows by %s: %w", up.Dimension, err)
	}
	s.weights[id] = weights
	return weights, nil
}

// tally runs a query that gives numbers from 0 to n-1 with numbers of rows, and
// adds these up. The question may be asked again: whoever asks sets them to 0 first.
func tally(ctx context.Context, node *clickhouse.Node, q clickhouse.Query, what string, n int, at func(i int) *uint64) error {
	return node.Rows(ctx, q, func(scan func(...any) error) error {
		var i uint32
		var rows uint64
		if err := scan(&i, &rows); err != nil {
			return err
		}
		if int(i) >= n {
			return fmt.Errorf("%s %d is out of range", what, i)
		}
		*at(int(i)) += rows
		return nil
	})
}
