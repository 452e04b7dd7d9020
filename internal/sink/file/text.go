package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

// fixed are the columns in front of the job's own.
var fixed = [...]string{"date", "level", "period"}

// checkNames refuses names that a file would have twice.
func checkNames(c Config) error {
	seen := slices.Clone(fixed[:])
	for _, column := range slices.Concat(c.Dimensions, c.Metrics) {
		if slices.Contains(seen, column.Name) {
			return failure.New(failure.Usage, fmt.Errorf("the file would have two columns %s", column.Name), "give the dimension or metric another name")
		}
		seen = append(seen, column.Name)
	}
	return nil
}

// names are those of all columns.
func (c Config) names() []string {
	names := slices.Clone(fixed[:])
	for _, column := range slices.Concat(c.Dimensions, c.Metrics) {
		names = append(names, column.Name)
	}
	return names
}

// An encoder writes the rows of one file.
type encoder interface {
	// row writes a row; nil values are NULL.
	row(u job.Unit, values []*row.Value) error
	// close writes what is left. The file stays open.
	close() error
}

// encoder makes the encoder of a part.
func (c Config) encoder(w io.Writer) (encoder, error) {
	switch c.Format {
	case job.NDJSON:
		return newNDJSON(c, w), nil
	case job.CSV:
		return &csvFile{columns: c.textColumns(), w: bufio.NewWriter(w)}, nil
	case job.Parquet:
		return newParquet(c, w, partRows), nil
	}
	return nil, failure.Errorf(failure.Usage, "no file format %q", c.Format)
}

// A textColumn writes the values of a column.
type textColumn struct {
	rowkey.Text
	typ row.Type
}

func (c Config) textColumns() []textColumn {
	var columns []textColumn
	for _, column := range slices.Concat(c.Dimensions, c.Metrics) {
		columns = append(columns, textColumn{rowkey.NewText(column.Type, c.Zone), column.Type})
	}
	return columns
}

// ndjson writes a JSON object a line.
type ndjson struct {
	columns []textColumn
	names   []string // with quotes, a comma in front and a colon behind
	w       *bufio.Writer
	line    []byte
	quoted  bytes.Buffer
	quote   *json.Encoder
}

func newNDJSON(c Config, w io.Writer) *ndjson {
	n := &ndjson{columns: c.textColumns(), w: bufio.NewWriter(w)}
	n.quote = json.NewEncoder(&n.quoted)
	n.quote.SetEscapeHTML(false)
	for i, name := range c.names() {
		text := string(n.string(nil, name)) + ":"
		if i > 0 {
			text = "," + text
		}
		n.names = append(n.names, text)
	}
	return n
}

// string appends a text in quotes.
func (n *ndjson) string(dst []byte, s string) []byte {
	n.quoted.Reset()
	if err := n.quote.Encode(s); err != nil {
		return strconv.AppendQuote(dst, s) // a string can always be encoded
	}
	return append(dst, bytes.TrimSuffix(n.quoted.Bytes(), []byte("\n"))...)
}

func (n *ndjson) row(u job.Unit, values []*row.Value) error {
	n.line = append(n.line[:0], '{')
	for i, text := range [...]string{u.Date.Format(time.DateOnly), u.Code, string(u.Period.Period)} {
		n.line = append(n.line, n.names[i]...)
		n.line = n.string(n.line, text)
	}
	for i, v := range values {
		n.line = append(n.line, n.names[len(fixed)+i]...)
		n.line = n.value(n.line, &n.columns[i], v)
	}
	n.line = append(n.line, '}', '\n')
	_, err := n.w.Write(n.line)
	return err
}

// value appends a value: numbers and truth values as they are, NULL as null, a
// composite as its JSON, and all else, NaN and the infinities too, as text.
func (n *ndjson) value(dst []byte, c *textColumn, v *row.Value) []byte {
	switch {
	case v == nil:
		return append(dst, "null"...)
	case c.typ.JSON:
		return append(dst, v.Str...)
	}
	switch c.typ.Kind {
	case row.Bool, row.UInt, row.Int, row.BigInt, row.Decimal:
		return c.Append(dst, v)
	case row.Float:
		at := len(dst)
		if dst = c.Append(dst, v); isNumber(dst[at:]) {
			return dst
		}
		return n.string(dst[:at], string(dst[at:]))
	}
	return n.string(dst, string(c.Append(nil, v)))
}

// isNumber tells the text of a number from NaN and Infinity.
func isNumber(text []byte) bool { return !bytes.ContainsAny(text, "Ny") }

func (n *ndjson) close() error { return n.w.Flush() }

// csvFile writes lines as ClickHouse's CSV: texts in double quotes, which are
// doubled within, all else without, and NULL as \N. The line with the names is
// the merged file's.
type csvFile struct {
	columns []textColumn
	w       *bufio.Writer
	line    []byte
}

// null is NULL in a CSV file; a text of these characters stands in quotes.
const null = `\N`

func (f *csvFile) row(u job.Unit, values []*row.Value) error {
	line := f.line[:0]
	for i, text := range [...]string{u.Date.Format(time.DateOnly), u.Code, string(u.Period.Period)} {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendQuoted(line, text)
	}
	for i, v := range values {
		line = append(line, ',')
		switch c := &f.columns[i]; {
		case v == nil:
			line = append(line, null...)
		case c.typ.Kind == row.String, c.typ.Kind == row.Date, c.typ.Kind == row.DateTime:
			line = appendQuoted(line, string(c.Append(nil, v)))
		default:
			line = c.Append(line, v)
		}
	}
	line = append(line, '\n')
	f.line = line
	_, err := f.w.Write(f.line)
	return err
}

func (f *csvFile) close() error { return f.w.Flush() }

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}
