package scatter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	// TrustPlacement takes the sharding key's word for where rows lie.
	TrustPlacement bool
	Log            *slog.Logger

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
		if columns[i].Type.Kind == row.Composite && p.Job.SQL == "" {
			dims[i].Expr = "toString(" + dims[i].Expr + ")"
			cast = true
			continue
		}
		if strings.Contains(columns[i].Type.Name, "LowCardinality") && slices.ContainsFunc(p.Nodes, hasExperimentalDictionaries) {
			dims[i] = withoutDictionary(dims[i], columns[i].Type)
			cast = true
		}
	}
	if cast {
		columns, err = p.columns(ctx, u, dims)
	}
	if err == nil {
		err = p.checkForms(u, columns)
	}
	return level{columns, dims}, err
}

// checkForms refuses columns that have no form in a key or a cell.
func (p *Planner) checkForms(u job.Unit, columns []row.Column) error {
	for i, c := range columns {
		if c.Type.Kind != row.Composite {
			continue
		}
		path := "metrics." + c.Name
		if dims := p.Job.Levels[u.Level].Dimensions; i < len(dims) {
			path = fmt.Sprintf("dimensions[%d]", dims[i])
		}
		return p.Job.ErrorAt(path, failure.New(failure.Preflight, fmt.Errorf("column %s is a %s, which no key or cell can hold", c.Name, c.Type.Name),
			"wrap the expression, for example in toString(…) or toJSONString(…)"))
	}
	return nil
}

// hasExperimentalDictionaries says that a server is of a time when
// LowCardinality was an experiment; it became stable during 19.x.
func hasExperimentalDictionaries(n *clickhouse.Node) bool {
	return majorVersion(n.Version) < 20
}

func (p *Planner) columns(ctx context.Context, u job.Unit, dims []job.Dimension) ([]row.Column, error) {
	b, err := NewBuilder(p.Job, u, dims)
	if err != nil {
		return nil, err
	}
	columns, err := p.header(ctx, b)
	if err != nil {
		return nil, p.locate(ctx, b, err)
	}
	for i := range columns {
		if i < len(dims) {
			columns[i].Name = dims[i].Name
		} else {
			columns[i].Name = p.Job.Metrics[i-len(dims)].Name
		}
	}
	return columns, nil
}

// header asks for the columns of a unit's result without reading any row.
func (p *Planner) header(ctx context.Context, b *Builder) ([]row.Column, error) {
	s, err := p.Nodes[0].Stream(ctx, clickhouse.Query{ID: p.id("types-" + b.unit.Code), SQL: b.Group("0"), CountLast: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	_, err = s.Next(&row.Batch{Width: len(s.Columns)}, 1)
	return s.Columns, err
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

// Plan makes the plan of a run for a date.
func (p *Planner) Plan(ctx context.Context, date time.Time) (*Plan, error) {
	plan := &Plan{Job: p.Job.Name, Date: day(date), Nodes: planNodes(p.Nodes), Limits: p.Nodes[0].Limits()}
	s, err := p.survey(ctx, p.Job.Units(date))
	if err != nil {
		return nil, err
	}
	for _, u := range s.units {
		up, err := p.unit(ctx, u, s)
		if err != nil {
			return nil, fmt.Errorf("planning level %s over %s: %w", u.Code, u.Period.Period, err)
		}
		plan.Units = append(plan.Units, *up)
	}
	plan.assign()
	plan.ID = plan.Hash()
	return plan, nil
}

// survey learns what all units share.
func (p *Planner) survey(ctx context.Context, units []job.Unit) (*survey, error) {
	s := &survey{
		units: units, rows: map[job.Period]uint64{}, scan: map[job.Period]uint64{}, values: map[string]uint64{}, groups: map[int]uint64{},
		weights: map[weightKey][]uint64{}, samples: map[weightKey][]countedValue{}, placed: map[string]placementOf{},
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

func (p *Planner) unit(ctx context.Context, u job.Unit, s *survey) (*UnitPlan, error) {
	l := p.levels[u.Level]
	up := &UnitPlan{
		Unit: u, Level: u.Code, Period: string(u.Period.Period), Start: day(u.Period.Start), End: day(u.Period.End),
		Columns: l.columns, Cardinality: map[string]uint64{}, Uncounted: p.Job.SQL != "", dims: l.dims,
		Rows: s.rows[u.Period.Period], Scan: s.scan[u.Period.Period],
	}
	if up.Rows == 0 {
		p.Log.Warn("no rows in the source", "level", up.Level, "period", up.Period, "start", up.Start, "end", up.End)
	}
	for _, d := range l.dims {
		up.Cardinality[d.Name] = scaleDistinct(s.values[d.Name], s.counted, up.Rows)
	}
	up.Groups = scaleDistinct(s.groups[u.Level], s.counted, up.Rows)
	if s.sampled {
		up.Sampled = s.counted
	}
	if err := p.decide(ctx, up, s); err != nil {
		return nil, err
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	for i := range up.Slices {
		slice := &up.Slices[i]
		slice.SQL = b.on(slice.Shard, up).Group(up.condition(*slice))
	}
	return up, nil
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
		return p.distinct(ctx, s, u, 0)
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
			return p.distinct(ctx, s, shorter, 0)
		}
	}
	return p.distinct(ctx, s, u, budget)
}

// distinct counts the distinct values of all dimensions and levels in a period; it stops after reading so many rows if limit is not 0.
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

// id makes a query id; a server refuses one that still runs.
func (p *Planner) id(what string) string {
	return fmt.Sprintf("ck2hbase-%s-plan-%s-%d", p.Run, strings.ToLower(what), p.queries.Add(1))
}
