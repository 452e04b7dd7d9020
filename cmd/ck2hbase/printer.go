package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

// alignedRows is how many rows of a table are kept to align their columns.
const alignedRows = 200

// A printer writes rows that were read: as JSON, or as a table for each level
// and period.
type printer struct {
	out    io.Writer
	json   bool
	table  *tabwriter.Writer
	rows   int // of the table that is begun
	tables int
}

func (f *common) printer() *printer {
	return &printer{out: f.app.stdout, json: f.json, table: tabwriter.NewWriter(f.app.stdout, 0, 0, 2, ' ', 0)}
}

// begin starts the table of a level and period.
func (p *printer) begin(head mover.Found) error {
	if p.json {
		return nil
	}
	if err := p.end(); err != nil {
		return err
	}
	if p.tables > 0 {
		if _, err := fmt.Fprintln(p.out); err != nil {
			return printed(err)
		}
	}
	p.tables++
	_, err := fmt.Fprintf(p.out, "level %s, %s to %s, run %s\n", head.Level, head.Period, head.Date, head.Run)
	return printed(err)
}

func (p *printer) row(f mover.Found) error {
	if p.json {
		line, err := json.Marshal(f)
		if err != nil {
			return failure.New(failure.Sink, err, "")
		}
		_, err = fmt.Fprintf(p.out, "%s\n", line)
		return printed(err)
	}
	var names, values []string
	for _, v := range slices.Concat(f.Dimensions, f.Metrics) {
		names, values = append(names, v.Name), append(values, shown(v.Value))
	}
	if f.Metrics == nil {
		values = append(values, "no such row")
	}
	if p.rows == 0 {
		p.line(names)
	}
	p.line(values)
	if p.rows++; p.rows%alignedRows == 0 {
		return printed(p.table.Flush())
	}
	return nil
}

// line puts a line into the table; what goes wrong is told by Flush.
func (p *printer) line(cells []string) { fmt.Fprintln(p.table, strings.Join(cells, "\t")) }

// end writes what is left of a table.
func (p *printer) end() error {
	if p.json || p.tables == 0 {
		return nil
	}
	if p.rows == 0 {
		fmt.Fprintln(p.table, "no rows")
	}
	p.rows = 0
	return printed(p.table.Flush())
}

// shown is a value for a person.
func shown(v any) string {
	if v == nil {
		return mover.NullText
	}
	text := fmt.Sprint(v)
	if text == "" || text == mover.NullText || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(text, `"`) {
		return strconv.Quote(text)
	}
	return text
}
