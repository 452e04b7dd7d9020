package mover

import (
	"fmt"
	"slices"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

// published reads the rows of one pointer as the run wrote them.
type published struct {
	pointer ledger.Pointer
	unit    job.Unit
	// names are those of the metrics, qualifiers those of the cells.
	names, qualifiers []string
	cells             *rowkey.Cells
}

// published prepares to read what a pointer of a level shows.
func (l Lookup) published(p ledger.Pointer, level int) (*published, error) {
	if now := keyOf(l.Job); p.RowKey != now {
		return nil, l.Job.ErrorAt("sink.hbase.row_key", failure.New(failure.Usage,
			fmt.Errorf("the keys have changed since run %s was published: they were %s", p.Run, p.RowKey), "run the job again"))
	}
	date, err := job.ParseDate(p.Date)
	if err != nil {
		return nil, badPointer(p, err)
	}
	u := &published{pointer: p, unit: job.Unit{Level: level, Code: p.Level, Date: date, Period: job.Period(p.Period).Span(date)}}
	types := make([]row.Type, len(p.Metrics))
	var metrics []job.Metric
	for i, f := range p.Metrics {
		if types[i], err = row.ParseType(f.Type); err != nil {
			return nil, badPointer(p, err)
		}
		at := slices.IndexFunc(l.Job.Metrics, func(m job.Metric) bool { return m.Name == f.Name })
		if at < 0 {
			return nil, failure.New(failure.Usage, fmt.Errorf("metric %s was published and is not in the job any more", f.Name), "run the job again")
		}
		if column, encode := cellOf(l.Job, at); f.Column != "" && (f.Column != column || f.Encode != encode) {
			return nil, failure.New(failure.Usage, fmt.Errorf("the cells of metric %s have changed since run %s was published: it was in column %s, encoded as %s, and is in %s, as %s",
				f.Name, p.Run, f.Column, f.Encode, column, encode), "run the job again")
		}
		metrics = append(metrics, l.Job.Metrics[at])
		u.names = append(u.names, f.Name)
		if l.Job.HBase.Pack == "" {
			u.qualifiers = append(u.qualifiers, l.Job.HBase.Columns[at])
		}
	}
	if l.Job.HBase.Pack != "" {
		u.qualifiers = l.Job.HBase.Columns
	}
	u.cells, err = makeCells(l.Job, metrics, types)
	return u, err
}

func badPointer(p ledger.Pointer, err error) error {
	return failure.New(failure.Sink, fmt.Errorf("the pointer of run %s: %w", p.Run, err), "")
}

// metrics decodes the cells of a row.
func (u *published) metrics(r hbase.Row) (Fields, error) {
	values, err := u.cells.Decode(func(i int) ([]byte, bool) { return r.Value(u.pointer.Family, u.qualifiers[i]) })
	if err != nil {
		return nil, failure.New(failure.Sink, fmt.Errorf("the row with the key %q: %w", r.Key, err),
			"encode, columns or pack in the job file may have changed since the rows were written")
	}
	out := make(Fields, len(values))
	for i, v := range values {
		out[i] = NamedValue{u.names[i], v}
	}
	return out, nil
}

// cellOf says in which column a metric is, and how it is encoded.
func cellOf(j *job.Job, metric int) (column, encode string) {
	if j.HBase.Pack != "" {
		return j.HBase.Pack, "pack"
	}
	return j.HBase.Columns[metric], string(j.Metrics[metric].Encode)
}

// keyOf says how a job's keys look.
func keyOf(j *job.Job) string {
	if j.HBase.Salt == nil {
		return j.HBase.RowKey
	}
	return j.HBase.RowKey + ", " + j.HBase.Salt.Describe()
}
