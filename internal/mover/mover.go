// Package mover runs a job: its phases in order, from the preflight to the
// published pointer. It is the only package that knows all the others.
package mover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/fingerprint"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// A Mover moves one job for one date.
type Mover struct {
	Job  *job.Job
	Date time.Time
	// Given, if not nil, is the plan to run, as [Mover.Plan] made it.
	Given *scatter.Plan
	// TrustPlacement takes the sharding key's word for where rows lie.
	TrustPlacement bool
	// DryRun asks ClickHouse everything and writes nothing anywhere.
	DryRun   bool
	Log      *slog.Logger
	Progress *report.Progress
	// Rates, if not nil, can change the cap on writes while a run is under way.
	Rates *Rates
}

// runIDs match what newRunID gives.
var runIDs = regexp.MustCompile(`^\d{8}t\d{6}-[a-z2-7]{6}$`)

// newRunID gives an id that sorts by time and that no two runs share.
func newRunID(now time.Time) string {
	return now.UTC().Format("20060102t150405") + "-" + strings.ToLower(rand.Text()[:6])
}

// source is the ClickHouse side of a run, opened and checked.
type source struct {
	client  *clickhouse.Client
	planner *scatter.Planner
	// dims are all dimensions of the job.
	dims, metrics []row.Column
	// json tells which metrics were made JSON by metricsToJSON.
	json []bool
	// codec and cells are those of a table; nil for files.
	codec *rowkey.Codec
	cells *rowkey.Cells
}

// warn says what is odd about the keys.
func (s *source) warn(log *slog.Logger) {
	if s.codec == nil {
		return
	}
	for _, w := range s.codec.Warnings() {
		log.Warn(w)
	}
}

func (s *source) Close() { s.client.Close() }

// openSource connects to ClickHouse, proves the limits, learns the types of
// all dimensions and metrics, and compiles the row key and the cells with them.
func (m *Mover) openSource(ctx context.Context, run string) (*source, error) {
	client, err := clickhouse.Open(ctx, m.Job.Source, m.Job.Limits, m.Job.Scatter.PerNode+1, m.Log)
	if clickhouse.KindOf(err) == clickhouse.KindCancelled {
		return nil, err
	}
	if err != nil {
		return nil, m.Job.ErrorAt(clickhouse.Key(err), err)
	}
	client.Label(m.Job.Name, run)
	s := &source{client: client}
	s.planner = m.planner(client, run)
	err = m.compile(ctx, s)
	if err == nil && m.metricsToJSON(s) {
		s.planner = m.planner(client, run)
		err = m.compile(ctx, s)
	}
	if err == nil {
		err = m.checkEngine(ctx, client)
	}
	if err == nil {
		err = m.checkColumns(ctx, client)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

func (m *Mover) planner(client *clickhouse.Client, run string) *scatter.Planner {
	return &scatter.Planner{Job: m.Job, Nodes: client.Nodes(), Run: run, TrustPlacement: m.TrustPlacement, Log: m.Log}
}

// metricsToJSON lets ClickHouse make JSON of the metrics that are arrays, tuples
// or maps, for a file; it tells whether there are any.
func (m *Mover) metricsToJSON(s *source) bool {
	s.json = make([]bool, len(s.metrics))
	j := *m.Job
	j.Metrics = slices.Clone(j.Metrics)
	for i, c := range s.metrics {
		if s.json[i] = c.Type.Kind == row.Composite; s.json[i] {
			j.Metrics[i].Expr = "toJSONString(" + j.Metrics[i].Expr + ")"
		}
	}
	if !slices.Contains(s.json, true) {
		return false
	}
	m.Job = &j
	return true
}

// checkEngine refuses a table of which a node may have rows of its own: a slice
// asks one node, and would get the aggregate of a part. With one shard every
// table will do, with more it must be the same Distributed table on each node.
func (m *Mover) checkEngine(ctx context.Context, client *clickhouse.Client) error {
	shards := client.Shards()
	if shards == 1 {
		return nil
	}
	engines, err := client.Engines(ctx, m.Job.Source.Table)
	if err != nil {
		return inPreflight(err)
	}
	for i, engine := range engines {
		node := client.Nodes()[i].Addr
		kind, _, _ := strings.Cut(engine, "(")
		switch {
		case engine == "":
			err = fmt.Errorf("%s cannot be seen in system.tables of %s", m.Job.Source.Table, node)
		case kind != "Distributed":
			kind, _, _ = strings.Cut(kind, " ")
			err = fmt.Errorf("%s has the engine %s on %s: each of the %d shards may answer for its own rows alone", m.Job.Source.Table, kind, node, shards)
		case engine != engines[0]:
			err = fmt.Errorf("%s is %s on %s and %s on %s", m.Job.Source.Table, engines[0], client.Nodes()[0].Addr, engine, node)
		}
		if err != nil {
			return m.Job.ErrorAt("source.table", failure.New(failure.Preflight, err,
				"name a Distributed table that is the same on every node; local tables and views over them are not supported yet"))
		}
	}
	return m.checkQuery(ctx, client, engines[0])
}

// checkQuery refuses a query of the job's own that reads the local table behind
// the source.
func (m *Mover) checkQuery(ctx context.Context, client *clickhouse.Client, engine string) error {
	if m.Job.SQL == "" {
		return nil
	}
	d, ok, err := client.Nodes()[0].Distributed(ctx, engine)
	if err != nil || !ok {
		return inPreflight(err)
	}
	if name := readsLocal(m.Job.SQL, d); name != "" {
		return m.Job.ErrorAt("sql", failure.New(failure.Preflight,
			fmt.Errorf("the query reads %s, the local table behind %s: each shard would answer for its own rows alone", name, m.Job.Source.Table),
			"read "+m.Job.Source.Table))
	}
	return nil
}

// readsLocal gives the name by which a query reads the local table behind a
// Distributed one, "" if it does not.
func readsLocal(sql string, d clickhouse.Distributed) string {
	name := func(s string) string { return "[`\"]?" + regexp.QuoteMeta(s) + "[`\"]?" }
	from := regexp.MustCompile(`(?i)\b(?:FROM|JOIN)\s+((?:` + name(d.Database) + `\s*\.\s*)?` + name(d.Table) + `)(?:[^\w.]|$)`)
	if found := from.FindStringSubmatch(sql); found != nil {
		return found[1]
	}
	return ""
}

// checkColumns refuses a table whose columns are not the same on every node:
// slices would get their rows, but an ALIAS would not be the same number.
func (m *Mover) checkColumns(ctx context.Context, client *clickhouse.Client) error {
	columns, err := client.Columns(ctx, m.Job.Source.Table)
	if err != nil {
		return inPreflight(err)
	}
	for i, text := range columns {
		if text != columns[0] {
			return m.Job.ErrorAt("source.table", failure.New(failure.Preflight,
				fmt.Errorf("%s has other columns on %s (%s) than on %s (%s)", m.Job.Source.Table,
					client.Nodes()[i].Addr, firstOnly(text, columns[0]), client.Nodes()[0].Addr, firstOnly(columns[0], text)),
				"make the table the same on every node"))
		}
	}
	return nil
}

// firstOnly gives the first line of a text that another does not have.
func firstOnly(text, other string) string {
	others := strings.Split(other, "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(others, line) {
			return line
		}
	}
	return "no more"
}

func (m *Mover) compile(ctx context.Context, s *source) error {
	types := make([]row.Type, len(m.Job.Dimensions))
	for _, u := range firstUnits(m.Job.Units(m.Date)) {
		columns, err := s.planner.Columns(ctx, u)
		if err != nil {
			return inPreflight(err)
		}
		level := m.Job.Levels[u.Level]
		for i, d := range level.Dimensions {
			types[d] = columns[i].Type
		}
		s.metrics = slices.Clone(columns[len(level.Dimensions):]) // the same in all levels
	}
	for i := range s.json {
		s.metrics[i].Type.JSON = s.json[i]
	}
	s.dims = nil
	for i, d := range m.Job.Dimensions {
		s.dims = append(s.dims, row.Column{Name: d.Name, Type: types[i]})
	}
	if m.Job.File != nil {
		return nil
	}
	var err error
	if s.cells, err = m.compileCells(s.metrics); err != nil {
		return err
	}
	s.codec, err = compileKey(m.Job, s.dims, s.metrics)
	return err
}

func (m *Mover) compileCells(metrics []row.Column) (*rowkey.Cells, error) {
	types := make([]row.Type, len(metrics))
	for i, c := range metrics {
		types[i] = c.Type
	}
	cells, err := makeCells(m.Job, m.Job.Metrics, types)
	return cells, m.Job.ErrorAt(m.wrongMetric(types), err)
}

// wrongMetric gives the place of the metric that has no cells even beside one
// that is never NULL, or that of all metrics.
func (m *Mover) wrongMetric(types []row.Type) string {
	never := row.Type{Name: "UInt64", Base: "UInt64", Kind: row.UInt, Bits: 64}
	for i, one := range m.Job.Metrics {
		if _, err := makeCells(m.Job, []job.Metric{one, {Name: "rows"}}, []row.Type{types[i], never}); err != nil {
			return "metrics." + one.Name + ".encode"
		}
	}
	return "metrics"
}

// makeCells gives the codec of some of the job's metrics.
func makeCells(j *job.Job, metrics []job.Metric, types []row.Type) (*rowkey.Cells, error) {
	if j.HBase.Pack != "" {
		return rowkey.PackCells(metrics, types, j.Timezone)
	}
	return rowkey.CompileCells(metrics, types, j.Timezone)
}

func compileKey(j *job.Job, dims, metrics []row.Column) (*rowkey.Codec, error) {
	c := rowkey.Config{
		Template: j.HBase.RowKey, Salt: j.HBase.Salt, Metrics: metrics, Levels: j.Levels, Periods: j.Periods, Zone: j.Timezone,
	}
	for i, d := range dims {
		c.Dims = append(c.Dims, rowkey.Dim{Name: d.Name, Type: d.Type, Null: j.Dimensions[i].Null})
	}
	codec, err := rowkey.Compile(c)
	if err == nil && !codec.HasDate() {
		// The runs of two dates would write over each other's rows while the
		// pointers of both are valid.
		err = failure.New(failure.Usage, errors.New("a row key without {date} is not supported yet"), "add {date} to row_key")
	}
	return codec, j.ErrorAt("sink.hbase.row_key", err)
}

// firstUnits gives one unit of each level: the types do not depend on periods.
func firstUnits(units []job.Unit) []job.Unit {
	var first []job.Unit
	seen := map[int]bool{}
	for _, u := range units {
		if !seen[u.Level] {
			seen[u.Level] = true
			first = append(first, u)
		}
	}
	return first
}

// Plan makes the plan of a run without writing anything anywhere.
func (m *Mover) Plan(ctx context.Context) (*scatter.Plan, error) {
	m.Progress.Begin(report.Preflight)
	src, err := m.openSource(ctx, newRunID(time.Now()))
	if err != nil {
		return nil, err
	}
	defer src.Close()
	src.warn(m.Log)
	m.Progress.Begin(report.Plan)
	defer m.Progress.End()
	parts, err := m.sourceParts(ctx, src.client)
	if err != nil {
		return nil, err
	}
	plan, err := src.planner.Plan(ctx, m.Date)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	plan.Source = parts
	return plan, nil
}

// sourceParts is the hash of the state of the source's parts; empty where they
// cannot be seen.
func (m *Mover) sourceParts(ctx context.Context, client *clickhouse.Client) (string, error) {
	if m.Job.SQL != "" {
		return "", nil
	}
	table, err := fingerprint.Find(ctx, m.Job.Source, client.Nodes(), m.Log)
	if errors.Is(err, fingerprint.ErrNone) {
		return "", nil
	}
	if err != nil {
		return "", inPreflight(err)
	}
	f, err := table.Take(ctx)
	return f.Hash(), err
}
