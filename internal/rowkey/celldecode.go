package rowkey

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// Decode reads all metrics of a row, as values that encoding/json takes: see
// [Cells.DecodeCell]. cell gives the i-th cell, false where the row has none,
// which is nil for a metric whose NULL is skipped and an error for all else.
func (c *Cells) Decode(cell func(i int) ([]byte, bool)) ([]any, error) {
	if c.packed != nil {
		text, ok := cell(0)
		if !ok {
			return nil, errors.New("the row has no cell with the packed metrics")
		}
		return c.unpack(text)
	}
	out := make([]any, len(c.metrics))
	for i, m := range c.metrics {
		text, ok := cell(i)
		if !ok {
			if !c.formats[i].typ.Nullable || m.Null.Mode != job.NullSkip {
				return nil, fmt.Errorf("the row has no cell for the metric %s", m.Name)
			}
			continue
		}
		var err error
		if out[i], err = c.DecodeCell(i, text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DecodeCell reads the cell of metric i as something that encoding/json takes:
// nil for what NULL is written as, bool, int64, json.Number for other
// numbers, and string for the rest. NaN and infinities are strings, and so are
// bytes that are not UTF-8: "hex:" and their hex digits. It is for cells that
// are not packed.
func (c *Cells) DecodeCell(i int, cell []byte) (any, error) {
	m := &c.metrics[i]
	if c.formats[i].typ.Nullable && c.isNull(m, cell) {
		return nil, nil
	}
	v, err := c.decode(i, cell)
	if err != nil {
		return nil, fmt.Errorf("the cell of metric %s, %x: %w", m.Name, cell, err)
	}
	return v, nil
}

func (c *Cells) isNull(m *job.Metric, cell []byte) bool {
	switch m.Null.Mode {
	case job.NullEmpty:
		return len(cell) == 0
	case job.NullLiteral:
		return string(cell) == m.Null.Literal
	}
	return false
}

// sizes of the encodings of fixed width.
var cellSizes = map[job.Encoding]int{job.EncodeInt64: 8, job.EncodeInt32: 4, job.EncodeFloat64: 8, job.EncodeBool: 1}

func (c *Cells) decode(i int, cell []byte) (any, error) {
	if p := c.phoenix[i]; p != notPhoenix {
		f := &c.formats[i]
		v, err := p.parse(&f.typ, cell)
		if err != nil {
			return nil, err
		}
		return f.json(&v), nil
	}
	encoding := c.metrics[i].Encode
	if size, fixed := cellSizes[encoding]; fixed && len(cell) != size {
		return nil, fmt.Errorf("%d bytes where %s has %d", len(cell), encoding, size)
	}
	switch encoding {
	case job.EncodeInt64:
		return int64(binary.BigEndian.Uint64(cell)), nil
	case job.EncodeInt32:
		return int64(int32(binary.BigEndian.Uint32(cell))), nil
	case job.EncodeFloat64:
		return c.formats[i].json(&row.Value{Kind: row.Float, Num: binary.BigEndian.Uint64(cell)}), nil
	case job.EncodeBool:
		return cell[0] != 0, nil
	case job.EncodeDecimal:
		return decodeDecimal(cell)
	}
	return c.decodeText(i, cell)
}

func decodeDecimal(cell []byte) (any, error) {
	if len(cell) < 5 {
		return nil, fmt.Errorf("%d bytes where decimal has 5 or more", len(cell))
	}
	scale := int32(binary.BigEndian.Uint32(cell))
	if scale < 0 || scale > 1000 {
		return nil, fmt.Errorf("the scale %d", scale)
	}
	n := new(big.Int).SetBytes(cell[4:])
	if cell[4] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(cell)-4)*8))
	}
	return json.Number(decimalText(nil, n, int(scale))), nil
}

// decodeText checks that numbers are numbers, and gives them as such.
func (c *Cells) decodeText(i int, cell []byte) (any, error) {
	f := &c.formats[i]
	text := string(cell)
	if f.typ.Kind == row.String {
		return f.json(&row.Value{Kind: row.String, Str: text}), nil
	}
	v, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	v.Kind = f.typ.Kind
	return f.json(&v), nil
}

// ValueJSON gives a value as [Cells.Decode] does: as something that
// encoding/json takes. zone is that of the job, nil is UTC.
func ValueJSON(t row.Type, v row.Value, zone *time.Location) any {
	f := newFormatter(t, zone)
	return f.json(&v)
}

func (f *formatter) json(v *row.Value) any {
	if v.Null {
		return nil
	}
	text := string(f.text(nil, v))
	switch f.typ.Kind {
	case row.Bool:
		return v.Num != 0
	case row.Float:
		if strings.HasSuffix(text, "NaN") || strings.HasSuffix(text, "Infinity") {
			return text
		}
		return json.Number(text)
	case row.UInt, row.Int, row.BigInt, row.Decimal:
		return json.Number(text)
	}
	if !utf8.ValidString(text) {
		return "hex:" + hex.EncodeToString([]byte(text))
	}
	return text
}
