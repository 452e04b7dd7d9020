package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A survey is what the planner learned of the source for a run.
type survey struct {
	units  []job.Unit
	layout layout
	// rows and scan are the rows of a period, and those that a query over it reads.
	rows, scan map[job.Period]uint64
	// values are the distinct values by dimension and groups those by level, of the
	// counted rows of a period, all of them or a sample.
	values  map[string]uint64
	groups  map[int]uint64
	counted uint64
	sampled bool
	// What was asked once for several units.
	weights map[weightKey][]uint64
	samples map[weightKey][]countedValue
	placed  map[string]placementOf
	differs map[int]string // why local tables cannot stand for the source, by level
}

// weightKey says what an enumeration depends on.
type weightKey struct {
	period    job.Period
	dimension string
}

type placementOf struct{ placed, why string }

// longestUnit is a unit of the longest period.
func (s *survey) longestUnit() job.Unit {
	return slices.MaxFunc(s.units, func(a, b job.Unit) int {
		return cmp.Compare(a.Period.End.Sub(a.Period.Start), b.Period.End.Sub(b.Period.Start))
	})
}

// longest writes queries over the longest period.
func (s *survey) longest(p *Planner) (*Builder, error) {
	return NewBuilder(p.Job, s.longestUnit(), nil)
}

// survey learns what all units share.
func (p *Planner) survey(ctx context.Context, units []job.Unit) (*survey, error) {
	s := &survey{
		units: units, rows: map[job.Period]uint64{}, scan: map[job.Period]uint64{}, values: map[string]uint64{}, groups: map[int]uint64{},
		weights: map[weightKey][]uint64{}, samples: map[weightKey][]countedValue{}, placed: map[string]placementOf{}, differs: map[int]string{},
	}
	s.layout = p.layout(ctx)
	for _, u := range units {
		if _, err := p.level(ctx, u); err != nil {
			return nil, err
		}
		if _, known := s.rows[u.Period.Period]; known {
			continue
		}
		if err := p.weigh(ctx, s, u); err != nil {
			return nil, fmt.Errorf("counting the rows of %s: %w", u.Period.Period, err)
		}
	}
	return s, p.measure(ctx, s)
}

// weigh counts the rows of a period, and those that a query over it reads.
func (p *Planner) weigh(ctx context.Context, s *survey, u job.Unit) error {
	l := p.levels[u.Level]
	up := &UnitPlan{Unit: u, Columns: l.columns, dims: l.dims}
	b, err := up.Builder(p.Job)
	if err != nil {
		return err
	}
	rows, scan, err := p.count(ctx, b.rows(""))
	if err != nil {
		return err
	}
	// A server may count some rows without reading them.
	if explained, err := p.explain(ctx, up, &s.layout, ""); err == nil {
		scan = max(rows, explained)
	} else if !errors.Is(err, errNoEstimate) {
		return err
	}
	s.rows[u.Period.Period], s.scan[u.Period.Period] = rows, scan
	return nil
}

const (
	// passShare is the part of the run's work that the counting of distinct values
	// may cost, and passRows what it may read in any case.
	passShare = 0.05
	passRows  = 10_000_000
)

// measure estimates the distinct values of all dimensions and levels, in one
// pass over the longest period, or over a sample where a full pass costs too much:
// over fewer days, or if that is not to be had, over as many rows as it may read.
func (p *Planner) measure(ctx context.Context, s *survey) error {
	var work float64
	for _, u := range s.units {
		work += float64(s.scan[u.Period.Period]) * float64(len(p.Nodes))
	}
	budget := uint64(max(passShare*work, passRows))
	u := s.longestUnit()
	rows, scan := s.rows[u.Period.Period], s.scan[u.Period.Period]
	if scan <= budget {
		return p.distinctOrFewer(ctx, s, u, 0)
	}
	s.sampled = true
	days := int(u.Period.End.Sub(u.Period.Start).Hours()/24) + 1
	if fewer := int(float64(days) * float64(budget) / float64(scan)); fewer >= 1 && fewer < days {
		shorter := u
		shorter.Period.Start = u.Period.End.AddDate(0, 0, 1-fewer)
		b, err := NewBuilder(p.Job, shorter, nil)
		if err != nil {
			return err
		}
		n, read, err := p.count(ctx, b.rows(""))
		if err != nil {
			return fmt.Errorf("counting the rows of %d days: %w", fewer, err)
		}
		if n > 0 && n < rows && read <= 2*budget {
			return p.distinctOrFewer(ctx, s, shorter, 0)
		}
	}
	return p.distinctOrFewer(ctx, s, u, budget/uint64(max(1, s.layout.shards)))
}

// fewRows is the sample of each server where a pass is over the job's limits.
const fewRows = 100_000

// distinctOrFewer counts in a small sample where the pass is over a limit, and if
// that is too much as well, takes it that all values are different: a plan that
// does not know them is a plan all the same.
func (p *Planner) distinctOrFewer(ctx context.Context, s *survey, u job.Unit, limit uint64) error {
	err := p.distinct(ctx, s, u, limit)
	if clickhouse.KindOf(err) != clickhouse.KindLimit {
		return err
	}
	s.sampled = true
	err = p.distinct(ctx, s, u, fewRows)
	if clickhouse.KindOf(err) != clickhouse.KindLimit {
		return err
	}
	p.Log.Warn("the values of the dimensions could not be counted within the limits", "error", err)
	s.counted = s.rows[u.Period.Period]
	for _, d := range p.Job.Dimensions {
		s.values[d.Name] = s.counted
	}
	for i := range p.Job.Levels {
		s.groups[i] = s.counted
	}
	return nil
}

// distinct counts the distinct values of all dimensions and levels in a period;
// each server stops after reading so many rows if limit is not 0.
func (p *Planner) distinct(ctx context.Context, s *survey, u job.Unit, limit uint64) error {
	b, err := NewBuilder(p.Job, u, nil)
	if err != nil {
		return err
	}
	counts := make([]uint64, len(p.Job.Dimensions)+len(p.Job.Levels)+1)
	dest := make([]any, len(counts))
	for i := range counts {
		dest[i] = &counts[i]
	}
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		return n.Row(ctx, clickhouse.Query{ID: p.id("uniq"), SQL: b.sizes(p.levels), Gentle: gentle, ReadAtMost: limit}, dest...)
	})
	if err != nil {
		return fmt.Errorf("counting the values of the dimensions: %w", err)
	}
	for i, d := range p.Job.Dimensions {
		s.values[d.Name] = counts[i]
	}
	for i := range p.Job.Levels {
		s.groups[i] = counts[len(p.Job.Dimensions)+i]
	}
	s.counted = counts[len(counts)-1]
	return nil
}
