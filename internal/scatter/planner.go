package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Planner makes plans. Its queries are bounded as those of a run are.
type Planner struct {
	Job *job.Job
	// Nodes are the connected nodes; the first one is asked before the others.
	Nodes []*clickhouse.Node
	// Run prefixes the ids of the planner's queries.
	Run string
	Log *slog.Logger

	queries atomic.Int64
	levels  map[int]level // those asked for so far, by index
}

// A level is what the planner learned of one level's result.
type level struct {
	columns []row.Column
	dims    []job.Dimension
}

// Columns asks for the columns of a level's result without reading any row: the
// level's dimensions, then the metrics. It is where an unknown column, a syntax
// error or a type that cannot be written is found; such an error shows the
// place in the job file.
func (p *Planner) Columns(ctx context.Context, u job.Unit) ([]row.Column, error) {
	l, err := p.level(ctx, u)
	return l.columns, err
}

// level asks for a level once: the preflight and the plan both need it.
func (p *Planner) level(ctx context.Context, u job.Unit) (level, error) {
	if l, ok := p.levels[u.Level]; ok {
		return l, nil
	}
	l, err := p.askLevel(ctx, u)
	if err != nil {
		return level{}, err
	}
	if p.levels == nil {
		p.levels = map[int]level{}
	}
	p.levels[u.Level] = l
	return l, nil
}

func (p *Planner) askLevel(ctx context.Context, u job.Unit) (level, error) {
	dims := levelDimensions(p.Job, u.Level)
	columns, err := p.columns(ctx, u, dims)
	if err != nil {
		return level{}, err
	}
	cast := false
	for i := range dims {
		if strings.Contains(columns[i].Type.Name, "LowCardinality") && slices.ContainsFunc(p.Nodes, hasExperimentalDictionaries) {
			dims[i] = withoutDictionary(dims[i], columns[i].Type)
			cast = true
		}
	}
	if cast {
		columns, err = p.columns(ctx, u, dims)
	}
	return level{columns, dims}, err
}

// hasExperimentalDictionaries says that a server is of a time when
// LowCardinality was an experiment; it became stable during 19.x.
func hasExperimentalDictionaries(n *clickhouse.Node) bool {
	major, _, _ := strings.Cut(n.Version, ".")
	v, err := strconv.Atoi(major)
	return err == nil && v < 20
}

func (p *Planner) columns(ctx context.Context, u job.Unit, dims []job.Dimension) ([]row.Column, error) {
	b, err := NewBuilder(p.Job, u, dims)
	if err != nil {
		return nil, err
	}
	s, err := p.Nodes[0].Stream(ctx, clickhouse.Query{ID: p.id("types-" + u.Code), SQL: b.Group("0"), CountLast: true})
	if err != nil {
		return nil, p.locate(ctx, b, err)
	}
	defer s.Close()
	if _, err := s.Next(&row.Batch{Width: len(s.Columns)}, 1); err != nil {
		return nil, p.locate(ctx, b, err)
	}
	columns := s.Columns
	for i := range columns {
		if i < len(dims) {
			columns[i].Name = dims[i].Name
		} else {
			columns[i].Name = p.Job.Metrics[i-len(dims)].Name
		}
	}
	return columns, nil
}

// locate finds the expression of the job file that an error is about, by asking
// for each of them alone, and shows the error at its place.
func (p *Planner) locate(ctx context.Context, b *Builder, err error) error {
	if clickhouse.KindOf(err) != clickhouse.KindPermanent {
		return err
	}
	for _, part := range b.parts() {
		if alone := p.try(ctx, part.sql); alone != nil {
			return p.Job.ErrorAt(part.path, failure.New(failure.Preflight, alone, failure.Remedy(alone)))
		}
	}
	return err
}

func (p *Planner) try(ctx context.Context, sql string) error {
	s, err := p.Nodes[0].Stream(ctx, clickhouse.Query{ID: p.id("part"), SQL: sql})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Next(&row.Batch{Width: len(s.Columns)}, 1)
	return err
}

// Plan makes the plan of a run for a date.
func (p *Planner) Plan(ctx context.Context, date time.Time) (*Plan, error) {
	plan := &Plan{Job: p.Job.Name, Date: day(date), Limits: p.Nodes[0].Limits()}
	for _, n := range p.Nodes {
		plan.Nodes = append(plan.Nodes, PlanNode{n.Addr, n.Shard, n.Replica, n.Version})
	}
	units := p.Job.Units(date)
	for _, u := range units {
		if _, err := p.level(ctx, u); err != nil {
			return nil, err
		}
	}
	sizes, err := p.measure(ctx, units)
	if err != nil {
		return nil, err
	}
	counted := map[weightKey]bucketWeights{} // levels of one period share an enumeration
	for _, u := range units {
		up, err := p.unit(ctx, u, p.levels[u.Level], sizes, counted)
		if err != nil {
			return nil, fmt.Errorf("planning level %s over %s: %w", u.Code, u.Period.Period, err)
		}
		plan.Units = append(plan.Units, *up)
	}
	return plan, nil
}

// weightKey says what an enumeration depends on.
type weightKey struct {
	period    job.Period
	dimension string
}

type bucketWeights []uint64

func (p *Planner) unit(ctx context.Context, u job.Unit, l level, sizes *sizes, counted map[weightKey]bucketWeights) (*UnitPlan, error) {
	up := &UnitPlan{
		Unit: u, Level: u.Code, Period: string(u.Period.Period), Start: day(u.Period.Start), End: day(u.Period.End),
		Strategy: "hash", Columns: l.columns, Cardinality: map[string]uint64{}, dims: l.dims,
	}
	if err := p.choose(up, sizes); err != nil {
		return nil, err
	}
	key := weightKey{u.Period.Period, up.Dimension}
	weights, ok := counted[key]
	if !ok {
		var err error
		if weights, err = p.weights(ctx, up); err != nil {
			return nil, err
		}
		counted[key] = weights
	}
	for _, w := range weights {
		up.Rows += w
		if w > 0 {
			up.FilledBuckets++
		}
	}
	up.Groups = sizes.groupsOf(up)
	return up, p.slice(up, weights)
}

// choose picks the slicing dimension among those of the level: any of them is
// right, since slices must keep the rows of a group together; the one with the
// most values cuts most evenly.
func (p *Planner) choose(up *UnitPlan, sizes *sizes) error {
	best := -1
	for i, d := range up.dims {
		up.Cardinality[d.Name] = sizes.values[d.Name]
		if best < 0 || sizes.values[d.Name] > sizes.values[up.dims[best].Name] {
			best = i
		}
	}
	up.Reason = "highest cardinality of the level"
	if want := p.Job.Scatter.Dimension; want != "" {
		best = slices.IndexFunc(up.dims, func(d job.Dimension) bool { return d.Name == want })
		up.Reason = "named by scatter.dimension"
		if best < 0 {
			return failure.New(failure.Usage,
				fmt.Errorf("scatter.dimension %q is not a dimension of level %q", want, up.Level),
				"slices must be cut by a dimension that the level groups by: name one that all levels have, or leave it out")
		}
	}
	up.SliceBy = up.dims[best]
	up.SliceType = up.Columns[best].Type
	up.Dimension = up.SliceBy.Name
	return nil
}

// sizes are estimates of the longest period.
type sizes struct {
	values map[string]uint64 // distinct values by dimension
	groups map[int]uint64    // groups by level
}

// measure estimates the sizes in one pass over the longest period.
func (p *Planner) measure(ctx context.Context, units []job.Unit) (*sizes, error) {
	longest := slices.MaxFunc(units, func(a, b job.Unit) int {
		return cmp.Compare(a.Period.End.Sub(a.Period.Start), b.Period.End.Sub(b.Period.Start))
	})
	b, err := NewBuilder(p.Job, longest, nil)
	if err != nil {
		return nil, err
	}
	counts := make([]uint64, len(p.Job.Dimensions)+len(p.Job.Levels))
	dest := make([]any, len(counts))
	for i := range counts {
		dest[i] = &counts[i]
	}
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		return n.Row(ctx, clickhouse.Query{ID: p.id("uniq"), SQL: b.sizes(p.levels), Gentle: gentle}, dest...)
	})
	if err != nil {
		return nil, fmt.Errorf("counting the values of the dimensions: %w", err)
	}
	out := &sizes{values: map[string]uint64{}, groups: map[int]uint64{}}
	for i, d := range p.Job.Dimensions {
		out.values[d.Name] = counts[i]
	}
	for i := range p.Job.Levels {
		out.groups[i] = counts[len(p.Job.Dimensions)+i]
	}
	return out, nil
}

// groupsOf estimates the groups of a unit: those of the longest period, but
// not more than the unit has rows.
func (s *sizes) groupsOf(up *UnitPlan) uint64 { return min(s.groups[up.Unit.Level], up.Rows) }

// ask puts a question to one node after the other, and once more, gently, when
// the answer would be over a limit.
func (p *Planner) ask(question func(n *clickhouse.Node, gentle bool) error) error {
	gentle := false
	return inTurn(p.Nodes, p.Log, func(n *clickhouse.Node) error {
		err := question(n, gentle)
		if clickhouse.KindOf(err) == clickhouse.KindLimit && !gentle {
			gentle = true
			err = question(n, gentle)
		}
		return err
	})
}

var errNobody = errors.New("there is no node to ask")

// inTurn puts a question to one node after the other while their errors may pass.
func inTurn(nodes []*clickhouse.Node, log *slog.Logger, question func(n *clickhouse.Node) error) error {
	err := errNobody
	for _, n := range nodes {
		err = question(n)
		if err == nil || !failure.IsTransient(err) || clickhouse.KindOf(err) == clickhouse.KindCancelled {
			break
		}
		log.Warn("a question failed and goes to another node", "node", n.Addr, "error", err)
	}
	return err
}

func (p *Planner) weights(ctx context.Context, up *UnitPlan) (bucketWeights, error) {
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	var weights bucketWeights
	err = p.ask(func(n *clickhouse.Node, gentle bool) error {
		weights = make(bucketWeights, Buckets)
		q := clickhouse.Query{ID: p.id("weights-" + up.Level + "-" + up.Period), SQL: b.weights(up.SliceBy, up.SliceType), Gentle: gentle}
		return n.Rows(ctx, q, func(scan func(...any) error) error {
			var bucket uint32
			var rows uint64
			if err := scan(&bucket, &rows); err != nil {
				return err
			}
			if int(bucket) >= len(weights) {
				return fmt.Errorf("bucket %d is out of range", bucket)
			}
			weights[bucket] += rows
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("counting the rows by %s: %w", up.Dimension, err)
	}
	return weights, nil
}

// slice cuts the buckets and deals the slices to the nodes, heaviest first.
func (p *Planner) slice(up *UnitPlan, weights bucketWeights) error {
	if up.Rows == 0 {
		p.Log.Warn("no rows in the source", "level", up.Level, "period", up.Period, "start", up.Start, "end", up.End)
	}
	n := p.Job.Scatter.Slices
	if n == 0 {
		n = len(p.Nodes)
	}
	// Where there seem to be no rows, one slice asks for all of them: a plan
	// decides how the work is cut, not whether there is any.
	up.Slices = cut(weights, max(1, min(n, up.FilledBuckets)))
	b, err := up.Builder(p.Job)
	if err != nil {
		return err
	}
	for i := range up.Slices {
		s := &up.Slices[i]
		s.Node = i % len(p.Nodes)
		s.SQL = b.Group(up.condition(*s))
	}
	return nil
}

// id makes a query id; a server refuses one that still runs.
func (p *Planner) id(what string) string {
	return fmt.Sprintf("ck2hbase-%s-plan-%s-%d", p.Run, strings.ToLower(what), p.queries.Add(1))
}
