package rowkey

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// Cells writes and reads the cells of one job's metrics. It is immutable and
// safe for concurrent use.
type Cells struct {
	metrics []job.Metric  // Encode is never auto here
	phoenix []phoenixType // by metric
	formats []formatter
	packed  *packed // nil where each metric has a cell of its own
}

// CompileCells checks that each metric's encoding can hold its type. zone
// renders DateTime values; nil is UTC. Its errors have class Usage.
func CompileCells(metrics []job.Metric, types []row.Type, zone *time.Location) (*Cells, error) {
	if len(metrics) == 0 || len(metrics) != len(types) {
		return nil, usage("add one, for example rows: count()", "a job needs metrics: there are %d, with %d types", len(metrics), len(types))
	}
	c := &Cells{metrics: append([]job.Metric(nil), metrics...)}
	rowCanVanish := true
	for i := range c.metrics {
		m := &c.metrics[i]
		if err := resolve(m, types[i]); err != nil {
			return nil, err
		}
		if !types[i].Nullable || m.Null.Mode != job.NullSkip {
			rowCanVanish = false
		}
		p, _ := phoenixNamed(string(m.Encode))
		c.phoenix = append(c.phoenix, p)
		c.formats = append(c.formats, newFormatter(types[i], zone))
	}
	if rowCanVanish {
		return nil, usage("add a metric that is never NULL, for example rows: count(), or null: empty for one metric",
			"every metric can be NULL and is skipped then: a row whose metrics are all NULL would not exist in HBase")
	}
	return c, nil
}

// resolve replaces auto by what it means and refuses impossible pairs.
func resolve(m *job.Metric, t row.Type) error {
	if err := resolveNull(m); err != nil {
		return err
	}
	switch m.Encode {
	case "", job.EncodeAuto:
		m.Encode = autoEncoding(t)
		return nil
	case job.EncodeText:
		return nil
	}
	var fits bool
	var remedy string
	integer := t.Kind == row.UInt || t.Kind == row.Int || t.Kind == row.BigInt
	switch m.Encode {
	case job.EncodeInt32, job.EncodeInt64:
		fits, remedy = integer, "encode: auto or text, or make the expression an integer, for example with toInt64(…) or toUnixTimestamp(…)"
	case job.EncodeFloat64:
		fits, remedy = t.Kind == row.Float, "encode: auto, or toFloat64(…) around the expression"
	case job.EncodeDecimal:
		fits, remedy = integer || t.Kind == row.Decimal, "encode: auto, or toDecimal64(…, scale) around the expression"
	case job.EncodeBool:
		fits, remedy = t.Kind == row.Bool || t.Kind == row.UInt && t.Bits == 8, "encode: auto, or make the expression a comparison"
	default:
		if p, ok := phoenixNamed(string(m.Encode)); ok {
			remedy = p.check(t)
			fits = remedy == ""
			break
		}
		return usage("the encodings are auto, text, int32, int64, float64, decimal, bool and types of Phoenix such as phoenix_bigint", "metric %s: the encoding %q is unknown", m.Name, m.Encode)
	}
	if !fits {
		return usage(remedy, "metric %s: the encoding %s cannot hold the type %s", m.Name, m.Encode, t.Name)
	}
	return nil
}

func resolveNull(m *job.Metric) error {
	switch m.Null.Mode {
	case "":
		m.Null.Mode = job.NullSkip
	case job.NullSkip, job.NullEmpty, job.NullLiteral, job.NullReject:
	default:
		return usage("write skip, empty or literal", "metric %s: a NULL cannot be %q", m.Name, m.Null.Mode)
	}
	return nil
}

func autoEncoding(t row.Type) job.Encoding {
	switch t.Kind {
	case row.UInt, row.Int:
		return job.EncodeInt64
	case row.Float:
		return job.EncodeFloat64
	case row.Bool:
		return job.EncodeBool
	}
	return job.EncodeText
}

// Len is the number of a row's cells: one for each metric, or one for all.
func (c *Cells) Len() int {
	if c.packed != nil {
		return 1
	}
	return len(c.metrics)
}

// Metrics is the number of metrics.
func (c *Cells) Metrics() int { return len(c.metrics) }

// Append appends the bytes of a row's cell i to dst; values are those of all
// metrics, which it does not keep. It tells false, with dst as it was, when the
// row has no such cell. Errors have class Source and name the metric and the value.
func (c *Cells) Append(dst []byte, i int, values []row.Value) ([]byte, bool, error) {
	if len(values) != len(c.metrics) {
		return nil, false, fmt.Errorf("%d values for %d metrics", len(values), len(c.metrics))
	}
	if c.packed != nil {
		dst, err := c.appendPacked(dst, values)
		return dst, true, err
	}
	return c.appendCell(dst, i, &values[i])
}

// appendCell appends the cell of one metric.
func (c *Cells) appendCell(dst []byte, i int, v *row.Value) ([]byte, bool, error) {
	m := &c.metrics[i]
	if v.Null {
		switch m.Null.Mode {
		case job.NullSkip:
			return dst, false, nil
		case job.NullEmpty:
			return dst, true, nil
		case job.NullLiteral:
			return append(dst, m.Null.Literal...), true, nil
		}
		return nil, false, nullRefused(m)
	}
	if err := c.checkKind(i, v); err != nil {
		return nil, false, err
	}
	if p := c.phoenix[i]; p != notPhoenix {
		out, ok := p.append(dst, &c.formats[i].typ, v)
		if !ok {
			return nil, false, c.overflow(i, v)
		}
		return out, true, nil
	}
	switch m.Encode {
	case job.EncodeInt64:
		n, ok := asInt64(v)
		if !ok {
			return nil, false, c.overflow(i, v)
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)), true, nil
	case job.EncodeInt32:
		n, ok := asInt64(v)
		if !ok || int64(int32(n)) != n {
			return nil, false, c.overflow(i, v)
		}
		return binary.BigEndian.AppendUint32(dst, uint32(n)), true, nil
	case job.EncodeFloat64:
		return binary.BigEndian.AppendUint64(dst, javaDouble(v.Num)), true, nil
	case job.EncodeDecimal:
		return c.appendDecimal(dst, i, v), true, nil
	case job.EncodeBool:
		if v.Num > 1 {
			return nil, false, c.overflow(i, v)
		}
		return append(dst, -byte(v.Num)), true, nil
	}
	return c.formats[i].text(dst, v), true, nil
}

func nullRefused(m *job.Metric) error {
	return badValue("null: skip, empty or literal", "the metric %s is NULL in a row", m.Name)
}

func (c *Cells) checkKind(i int, v *row.Value) error {
	if t := &c.formats[i].typ; v.Kind != t.Kind {
		return fmt.Errorf("metric %s: a value of kind %v in a column of type %s", c.metrics[i].Name, v.Kind, t.Name)
	}
	return nil
}

// javaDouble makes every NaN the one that Double.doubleToLongBits writes.
func javaDouble(bits uint64) uint64 {
	if math.IsNaN(math.Float64frombits(bits)) {
		return plainNaN
	}
	return bits
}

func (c *Cells) overflow(i int, v *row.Value) error {
	m := &c.metrics[i]
	remedy := "encode: decimal or text, which hold any integer"
	if m.Encode == job.EncodeBool || c.phoenix[i] == phoenixDate || c.phoenix[i] == phoenixTimestamp || c.phoenix[i] == phoenixDecimal {
		remedy = "encode: auto"
	}
	return badValue(remedy, "the value %s of metric %s does not fit the encoding %s", c.formats[i].text(nil, v), m.Name, m.Encode)
}

// asInt64 is an integer's value if an int64 holds it.
func asInt64(v *row.Value) (int64, bool) {
	switch v.Kind {
	case row.UInt:
		return int64(v.Num), v.Num <= math.MaxInt64
	case row.BigInt:
		return v.Big.Int64(), v.Big.IsInt64()
	}
	return int64(v.Num), true
}

// appendDecimal writes Bytes.toBytes(BigDecimal): the scale as an int, then
// the unscaled number in the shortest two's complement.
func (c *Cells) appendDecimal(dst []byte, i int, v *row.Value) []byte {
	if v.Kind == row.UInt || v.Kind == row.Int {
		return appendTwosComplement(append(dst, 0, 0, 0, 0), v.Num, v.Kind == row.Int && int64(v.Num) < 0)
	}
	scale := 0
	if v.Kind == row.Decimal {
		scale = c.formats[i].typ.Scale
	}
	return appendBigTwosComplement(binary.BigEndian.AppendUint32(dst, uint32(scale)), v.Big)
}
