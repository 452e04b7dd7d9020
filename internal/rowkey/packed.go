package rowkey

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// packed is what the JSON cell of all metrics needs besides them.
type packed struct {
	names [][]byte // "pv": as it stands in the object, by metric
}

// hexPrefix begins the JSON string of bytes that are not UTF-8.
const hexPrefix = "hex:"

// PackCells is [CompileCells] for one cell that holds all metrics as a JSON
// object. A row whose metrics are all NULL has one, too: {}.
func PackCells(metrics []job.Metric, types []row.Type, zone *time.Location) (*Cells, error) {
	if len(metrics) == 0 || len(metrics) != len(types) {
		return nil, usage("add one, for example rows: count()", "a job needs metrics: there are %d, with %d types", len(metrics), len(types))
	}
	c := &Cells{metrics: append([]job.Metric(nil), metrics...), packed: &packed{}}
	for i := range c.metrics {
		m := &c.metrics[i]
		switch m.Encode {
		case "", job.EncodeAuto:
			m.Encode = job.EncodeAuto
		case job.EncodeText:
		default:
			return nil, usage("remove encode, or write encode: text for a JSON string", "metric %s: in a packed cell it is JSON, not %s", m.Name, m.Encode)
		}
		if err := resolveNull(m); err != nil {
			return nil, err
		}
		c.formats = append(c.formats, newFormatter(types[i], zone))
		c.packed.names = append(c.packed.names, append(appendJSONString(nil, []byte(m.Name)), ':'))
	}
	return c, nil
}

// appendPacked writes the object, without white space, in the metrics' order.
func (c *Cells) appendPacked(dst []byte, values []row.Value) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for i := range values {
		v, m := &values[i], &c.metrics[i]
		if v.Null && m.Null.Mode == job.NullSkip {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, c.packed.names[i]...)
		switch {
		case !v.Null:
			if err := c.checkKind(i, v); err != nil {
				return nil, err
			}
			dst = c.appendMember(dst, i, v)
		case m.Null.Mode == job.NullEmpty:
			dst = append(dst, "null"...)
		case m.Null.Mode == job.NullLiteral:
			dst = appendJSONString(dst, []byte(m.Null.Literal))
		default:
			return nil, nullRefused(m)
		}
	}
	return append(dst, '}'), nil
}

// appendMember writes a value that is not NULL.
func (c *Cells) appendMember(dst []byte, i int, v *row.Value) []byte {
	f := &c.formats[i]
	if v.Kind == row.String && (!utf8.ValidString(v.Str) || strings.HasPrefix(v.Str, hexPrefix)) {
		dst = append(dst, '"')
		dst = append(dst, hexPrefix...)
		for j := range len(v.Str) {
			dst = append(dst, hexLower[v.Str[j]>>4], hexLower[v.Str[j]&15])
		}
		return append(dst, '"')
	}
	if c.metrics[i].Encode == job.EncodeAuto && bareInJSON(v) {
		return f.text(dst, v)
	}
	if v.Kind != row.String { // its text needs no escapes
		dst = f.text(append(dst, '"'), v)
		return append(dst, '"')
	}
	return appendJSONString(dst, v.Str)
}

// bareInJSON says that a value's text is a JSON value by itself.
func bareInJSON(v *row.Value) bool {
	switch v.Kind {
	case row.Bool, row.UInt, row.Int, row.BigInt, row.Decimal:
		return true
	case row.Float:
		x := math.Float64frombits(v.Num)
		return !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return false
}

// appendJSONString writes a text of UTF-8 with the escapes that JSON asks for
// and no others.
func appendJSONString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexLower[b>>4], hexLower[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

// unpack reads a packed cell.
func (c *Cells) unpack(cell []byte) ([]any, error) {
	out, err := c.readObject(cell)
	if err != nil {
		return nil, fmt.Errorf("the packed cell %q: %w", cell, err)
	}
	return out, nil
}

func (c *Cells) readObject(cell []byte) ([]any, error) {
	if !utf8.Valid(cell) {
		return nil, errors.New("it is not UTF-8")
	}
	in := json.NewDecoder(bytes.NewReader(cell))
	in.UseNumber()
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, errNotAnObject
	}
	out, seen := make([]any, len(c.metrics)), make([]bool, len(c.metrics))
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, errNotAnObject
		}
		i := c.named(name)
		if i < 0 || seen[i] {
			return nil, fmt.Errorf("the member %v is not one of the metrics, each once", name)
		}
		seen[i] = true
		value, err := in.Token()
		if err != nil {
			return nil, errNotAnObject
		}
		if out[i], err = c.readMember(i, value); err != nil {
			return nil, fmt.Errorf("the metric %s: %w", c.metrics[i].Name, err)
		}
	}
	if end, err := in.Token(); err != nil || end != json.Delim('}') {
		return nil, errNotAnObject
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotAnObject
	}
	for i, m := range c.metrics {
		if !seen[i] && (!c.formats[i].typ.Nullable || m.Null.Mode != job.NullSkip) {
			return nil, fmt.Errorf("the metric %s is missing", m.Name)
		}
	}
	return out, nil
}

var errNotAnObject = errors.New("it is not one JSON object")

// named is the metric of a member, or -1.
func (c *Cells) named(name json.Token) int {
	for i := range c.metrics {
		if c.metrics[i].Name == name {
			return i
		}
	}
	return -1
}

// readMember reads a token of encoding/json as [Cells.DecodeCell] gives it.
func (c *Cells) readMember(i int, token json.Token) (any, error) {
	m, f := &c.metrics[i], &c.formats[i]
	var text string
	switch token := token.(type) {
	case nil:
		if !f.typ.Nullable || m.Null.Mode != job.NullEmpty {
			return nil, errors.New("null where none is written")
		}
		return nil, nil
	case bool:
		if f.typ.Kind == row.Bool {
			return token, nil
		}
		return nil, fmt.Errorf("%v for the type %s", token, f.typ.Name)
	case json.Number:
		text = token.String()
	case string:
		if f.typ.Nullable && m.Null.Mode == job.NullLiteral && token == m.Null.Literal {
			return nil, nil
		}
		text = token
	default:
		return nil, errors.New("a mapping or list")
	}
	if f.typ.Kind == row.String {
		return f.readString(token, text)
	}
	v, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	v.Kind = f.typ.Kind
	return f.json(&v), nil
}

// readString undoes what is written of bytes that are not UTF-8.
func (f *formatter) readString(token json.Token, text string) (any, error) {
	if _, ok := token.(string); !ok {
		return nil, fmt.Errorf("%s is no text", text)
	}
	if digits, ok := strings.CutPrefix(text, hexPrefix); ok {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		text = string(raw)
	}
	return f.json(&row.Value{Kind: row.String, Str: text}), nil
}
