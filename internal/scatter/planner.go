package scatter

import (
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
	cast, asJSON := false, make([]bool, len(dims))
	for i := range dims {
		if columns[i].Type.Kind == row.Composite && p.Job.SQL == "" {
			form := "toString"
			if asJSON[i] = p.Job.File != nil; asJSON[i] {
				form = "toJSONString"
			}
			dims[i].Expr = form + "(" + dims[i].Expr + ")"
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
	for i := 0; i < len(dims) && err == nil; i++ {
		columns[i].Type.JSON = asJSON[i]
	}
	return level{columns, dims}, err
}

// checkForms refuses columns that have no form in a key or a cell. In a file a
// metric has one, once whoever knows its type has made JSON of it.
func (p *Planner) checkForms(u job.Unit, columns []row.Column) error {
	for i, c := range columns {
		if c.Type.Kind != row.Composite {
			continue
		}
		path := "metrics." + c.Name
		if dims := p.Job.Levels[u.Level].Dimensions; i < len(dims) {
			path = fmt.Sprintf("dimensions[%d]", dims[i])
		} else if p.Job.File != nil {
			continue
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
	var columns []row.Column
	err = inTurn(p.Nodes, p.Log, func(n *clickhouse.Node) error {
		columns, err = p.header(ctx, n, b)
		return err
	})
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

// header asks a node for the columns of a unit's result without reading any row.
func (p *Planner) header(ctx context.Context, n *clickhouse.Node, b *Builder) ([]row.Column, error) {
	s, err := n.Stream(ctx, clickhouse.Query{ID: p.id("types-" + b.unit.Code), SQL: b.Group("0"), CountLast: true})
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

// ask puts a question to one node after the other, and once more, gently, when
// the answer would be over a limit.
func (p *Planner) ask(question func(n *clickhouse.Node, gentle bool) error) error {
	return inTurn(p.Nodes, p.Log, gently(question))
}

// gently repeats a question gently, from then on, when its answer would be over a limit.
func gently(question func(n *clickhouse.Node, gentle bool) error) func(*clickhouse.Node) error {
	gentle := false
	return func(n *clickhouse.Node) error {
		err := question(n, gentle)
		if clickhouse.KindOf(err) == clickhouse.KindLimit && !gentle {
			gentle = true
			err = question(n, gentle)
		}
		return err
	}
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
