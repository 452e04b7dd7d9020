package mover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

// NullText is how NULL is written where a person names a dimension's value; it
// is ClickHouse's own notation.
const NullText = `\N`

// A Lookup names a group of a job, or several that lie side by side.
type Lookup struct {
	Job *job.Job
	// Values are texts by dimension; the dimensions named choose the level.
	Values map[string]string
	// Date is the business date, zero for the newest published one, and Period
	// the period, empty for all.
	Date   time.Time
	Period string
	// Level is a level's code for Scan, empty for all that have the dimensions named.
	Level string
	Log   *slog.Logger
}

// A Found is what was published of a group for one period.
type Found struct {
	Level      string `json:"level"`
	Period     string `json:"period"`
	Date       string `json:"date"`
	Run        string `json:"run"`
	Dimensions Fields `json:"dimensions"`
	// Metrics is null if the group has no row in the published run.
	Metrics Fields `json:"metrics"`
}

// Fields are named values in order.
type Fields []NamedValue

// A NamedValue is one of [Fields].
type NamedValue struct {
	Name  string
	Value any
}

// MarshalJSON writes an object with the fields in order, null for no fields.
func (f Fields) MarshalJSON() ([]byte, error) {
	if f == nil {
		return []byte("null"), nil
	}
	out := bytes.NewBufferString("{")
	for i, v := range f {
		name, err := json.Marshal(v.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "%s:%s", name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Get reads a group through the published pointers, so that what it shows is
// what readers see: for each period one result.
func (l Lookup) Get(ctx context.Context) ([]Found, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	level, err := l.level()
	if err != nil {
		return nil, err
	}
	hb, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer hb.Close()
	pointers, err := l.pointers(ctx, hb)
	if err != nil {
		return nil, err
	}
	codec, types, err := l.codec(pointers)
	if err != nil {
		return nil, err
	}
	if ranks := codec.Ranks(); len(ranks) > 0 {
		return nil, l.Job.ErrorAt("sink.hbase.row_key", failure.New(failure.Usage,
			fmt.Errorf("the row key holds the metric %s, so the key of one row cannot be told from its dimensions", ranks[0]),
			"read it with scan: ck2hbase scan "+l.Job.Path))
	}
	dims, shown, err := l.parse(level, types)
	if err != nil {
		return nil, err
	}
	var all []Found
	for _, p := range pointers {
		if p.Level != l.Job.Levels[level].Code || l.Period != "" && p.Period != l.Period {
			continue
		}
		f := Found{Level: p.Level, Period: p.Period, Date: p.Date, Run: p.Run, Dimensions: shown}
		if f.Metrics, err = l.read(ctx, hb, codec, p, level, dims); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, nothingPublished(l)
	}
	return all, nil
}

// check refuses what can be seen without a connection.
func (l Lookup) check() error {
	if l.Job.File != nil {
		return l.Job.ErrorAt("sink.file", failure.New(failure.Usage, errors.New("the job writes files, and there is no table to read"), "open "+l.Job.File.Path))
	}
	if l.Period != "" && !slices.Contains(l.Job.Periods, job.Period(l.Period)) {
		return failure.Errorf(failure.Usage, "the job has no period %s, only %v", l.Period, l.Job.Periods)
	}
	return nil
}

// dial connects to the cluster, or to the first of several that has something published.
func (l Lookup) dial(ctx context.Context) (*hbase.Client, error) {
	var first error
	for i, c := range l.Job.HBase.Clusters {
		hb, err := hbase.Dial(ctx, c, l.Log)
		if err != nil {
			err = l.Job.ErrorAt(fmt.Sprintf("sink.hbase.clusters[%d]", i), err)
		} else if len(l.Job.HBase.Clusters) > 1 {
			_, err = l.pointers(ctx, hb)
		}
		if err == nil {
			return hb, nil
		}
		if hb != nil {
			hb.Close()
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// level finds the level that groups by just the named dimensions.
func (l Lookup) level() (int, error) {
	for i, level := range l.Job.Levels {
		names := 0
		for _, d := range level.Dimensions {
			if _, ok := l.Values[l.Job.Dimensions[d].Name]; ok {
				names++
			}
		}
		if names == len(level.Dimensions) && names == len(l.Values) {
			return i, nil
		}
	}
	var levels []string
	for _, level := range l.Job.Levels {
		var names []string
		for _, d := range level.Dimensions {
			names = append(names, l.Job.Dimensions[d].Name+"=…")
		}
		levels = append(levels, strings.Join(names, " "))
	}
	return 0, failure.New(failure.Usage, errors.New("no level of the job groups by exactly the given dimensions"),
		"give one of: "+strings.Join(levels, "; "))
}

// pointers gives the published pointers of the wanted or the newest date.
func (l Lookup) pointers(ctx context.Context, hb *hbase.Client) ([]ledger.Pointer, error) {
	table, err := hb.Table(ctx, ledger.Table)
	if err != nil {
		return nil, err
	}
	if table == nil {
		return nil, nothingPublished(l)
	}
	date := ""
	if !l.Date.IsZero() {
		date = day(l.Date)
	}
	all, err := ledger.New(&hbaseStore{hb}, l.Log).Pointers(ctx, l.Job.Name, date)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nothingPublished(l)
	}
	newest := all[len(all)-1].Date
	return slices.DeleteFunc(all, func(p ledger.Pointer) bool { return p.Date != newest }), nil
}

func nothingPublished(l Lookup) error {
	what := "nothing is published of job " + l.Job.Name
	if !l.Date.IsZero() {
		what += " for " + day(l.Date)
	}
	return failure.New(failure.Preflight, errors.New(what), "run the job, or name another --date")
}

// codec compiles the row key with the types that the pointers carry.
func (l Lookup) codec(pointers []ledger.Pointer) (*rowkey.Codec, map[string]row.Type, error) {
	types, metricTypes := map[string]row.Type{}, map[string]row.Type{}
	for _, p := range pointers {
		if err := parseTypes(p, p.Dimensions, types); err != nil {
			return nil, nil, err
		}
		if err := parseTypes(p, p.Metrics, metricTypes); err != nil {
			return nil, nil, err
		}
	}
	dims := make([]row.Column, len(l.Job.Dimensions))
	for i, d := range l.Job.Dimensions {
		t, ok := types[d.Name]
		if !ok {
			return nil, nil, failure.New(failure.Usage, fmt.Errorf("dimension %s was not in the job when it was published", d.Name), "run the job again")
		}
		dims[i] = row.Column{Name: d.Name, Type: t}
	}
	var metrics []row.Column
	for _, m := range l.Job.Metrics {
		if t, ok := metricTypes[m.Name]; ok {
			metrics = append(metrics, row.Column{Name: m.Name, Type: t})
		}
	}
	codec, err := compileKey(l.Job, dims, metrics)
	return codec, types, err
}

func parseTypes(p ledger.Pointer, fields []ledger.Field, into map[string]row.Type) error {
	for _, f := range fields {
		t, err := row.ParseType(f.Type)
		if err != nil {
			return badPointer(p, err)
		}
		into[f.Name] = t
	}
	return nil
}

// parse reads the dimensions' texts in the level's order.
func (l Lookup) parse(level int, types map[string]row.Type) ([]row.Value, Fields, error) {
	var values []row.Value
	shown := Fields{}
	for _, d := range l.Job.Levels[level].Dimensions {
		name := l.Job.Dimensions[d].Name
		v, err := l.value(name, types[name])
		if err != nil {
			return nil, nil, err
		}
		values = append(values, v)
		shown = append(shown, NamedValue{name, rowkey.ValueJSON(types[name], v, l.Job.Timezone)})
	}
	return values, shown, nil
}

// value reads the text that was given for a dimension.
func (l Lookup) value(name string, t row.Type) (row.Value, error) {
	text := l.Values[name]
	if t.Nullable && text == NullText {
		return row.Value{Kind: t.Kind, Null: true}, nil
	}
	v, err := rowkey.ParseText(t, text, l.Job.Timezone)
	if err != nil {
		return row.Value{}, failure.New(failure.Usage, fmt.Errorf("%s: %w", name, err), "")
	}
	return v, nil
}

// read gets the row of a pointer's run; no row gives nil.
func (l Lookup) read(ctx context.Context, hb *hbase.Client, codec *rowkey.Codec, p ledger.Pointer, level int, dims []row.Value) (Fields, error) {
	u, err := l.published(p, level)
	if err != nil {
		return nil, err
	}
	key, err := codec.AppendKey(nil, u.unit, dims)
	if err != nil {
		return nil, failure.New(failure.Usage, err, failure.Remedy(err))
	}
	r, err := hb.Get(ctx, p.Table, key, p.Since, p.Until)
	if err != nil || len(r.Cells) == 0 {
		return nil, err
	}
	return u.metrics(r)
}
