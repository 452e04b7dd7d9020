package file

import (
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

const (
	// partRows and fileRows are the rows of a row group, which is in memory until
	// it is written: of a part, of which several are written at once, and of the merged file.
	partRows = 16 << 10
	fileRows = 128 << 10
	// batchRows are the rows handed to the writer together.
	batchRows = 256
)

// parquetFile writes a Parquet file.
type parquetFile struct {
	columns []parquetColumn
	w       *parquet.GenericWriter[any]
	rows    []parquet.Row
}

// A parquetColumn makes the values of a column.
type parquetColumn struct {
	name     string
	most     int64 // of a time's ticks before or after 1970, that fit; 0 is no bound
	node     parquet.Node
	optional bool
	value    func(v *row.Value) parquet.Value
}

func newParquet(c Config, w io.Writer, groupRows int64) *parquetFile {
	f := &parquetFile{columns: c.parquetColumns()}
	f.w = parquet.NewGenericWriter[any](w, c.schema(), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows))
	return f
}

// ordered is a group whose fields keep their order.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields are in the order of the file.
func (o ordered) Fields() []parquet.Field { return o.fields }

func (c Config) schema() *parquet.Schema {
	o := ordered{Group: parquet.Group{}}
	add := func(name string, node parquet.Node) {
		o.Group[name] = node
		o.fields = append(o.fields, parquet.Group{name: node}.Fields()...)
	}
	for i, name := range fixed {
		add(name, []parquet.Node{parquet.Date(), parquet.String(), parquet.String()}[i])
	}
	columns := c.parquetColumns()
	for i, column := range slices.Concat(c.Dimensions, c.Metrics) {
		node := columns[i].node
		if columns[i].optional {
			node = parquet.Optional(node)
		}
		add(column.Name, node)
	}
	return parquet.NewSchema("row", o)
}

func (c Config) parquetColumns() []parquetColumn {
	var columns []parquetColumn
	for i, d := range c.Dimensions {
		column := newParquetColumn(d, c.Zone)
		for _, l := range c.Levels {
			column.optional = column.optional || !slices.Contains(l.Dimensions, i)
		}
		columns = append(columns, column)
	}
	for _, m := range c.Metrics {
		columns = append(columns, newParquetColumn(m, c.Zone))
	}
	return columns
}

// newParquetColumn maps a type: integers up to 64 bits, floats, decimals, dates
// and times have types of their own in Parquet. Wider integers have none that
// readers know, and are texts.
func newParquetColumn(of row.Column, zone *time.Location) parquetColumn {
	t := of.Type
	c := parquetColumn{name: of.Name, optional: t.Nullable}
	switch t.Kind {
	case row.Bool:
		c.node, c.value = parquet.Leaf(parquet.BooleanType), func(v *row.Value) parquet.Value { return parquet.BooleanValue(v.Num != 0) }
	case row.UInt, row.Int:
		c.node = parquet.Int(t.Bits)
		if t.Kind == row.UInt {
			c.node = parquet.Uint(t.Bits)
		}
		c.value = func(v *row.Value) parquet.Value { return parquet.Int64Value(int64(v.Num)) }
		if t.Bits < 64 {
			c.value = func(v *row.Value) parquet.Value { return parquet.Int32Value(int32(uint32(v.Num))) }
		}
	case row.Float:
		c.node, c.value = parquet.Leaf(parquet.DoubleType), func(v *row.Value) parquet.Value { return parquet.DoubleValue(floatOf(v)) }
		if t.Bits == 32 {
			c.node, c.value = parquet.Leaf(parquet.FloatType), func(v *row.Value) parquet.Value { return parquet.FloatValue(float32(floatOf(v))) }
		}
	case row.Decimal:
		c.node, c.value = decimalColumn(t)
	case row.Date:
		c.node, c.value = parquet.Date(), func(v *row.Value) parquet.Value { return parquet.Int32Value(int32(int64(v.Num))) }
	case row.DateTime:
		c.node, c.value, c.most = timeColumn(t)
	default:
		text := rowkey.NewText(t, zone)
		c.node, c.value = parquet.String(), func(v *row.Value) parquet.Value { return parquet.ByteArrayValue(text.Append(nil, v)) }
		if t.JSON {
			c.node = parquet.JSON()
		}
	}
	return c
}

// timeColumn holds times in the unit that is no coarser than the type's. Parquet
// counts nanoseconds in 64 bits, which end on 11 April 2262, before ClickHouse's types do.
func timeColumn(t row.Type) (node parquet.Node, value func(*row.Value) parquet.Value, most int64) {
	unit, digits := parquet.Nanosecond, 9
	switch {
	case t.Scale <= 3:
		unit, digits = parquet.Millisecond, 3
	case t.Scale <= 6:
		unit, digits = parquet.Microsecond, 6
	}
	factor := int64(1)
	for range digits - t.Scale {
		factor *= 10
	}
	return parquet.Timestamp(unit), func(v *row.Value) parquet.Value { return parquet.Int64Value(int64(v.Num) * factor) }, math.MaxInt64 / factor
}

// fits is an error if a value cannot be in the column.
func (c *parquetColumn) fits(v *row.Value) error {
	if n := int64(v.Num); c.most == 0 || -c.most <= n && n <= c.most {
		return nil
	}
	return failure.New(failure.Source, fmt.Errorf("column %s: %d is a time that Parquet's nanoseconds cannot hold: they go from 1677-09-21 to 2262-04-11", c.name, int64(v.Num)),
		"wrap the expression in toDateTime64(…, 6), or in toString(…)")
}

// decimalColumn holds the unscaled value in 4 or 8 bytes, or in 16 or 32, big-endian.
func decimalColumn(t row.Type) (parquet.Node, func(*row.Value) parquet.Value) {
	precision := precisionOf(t)
	switch {
	case precision <= 9:
		return parquet.Decimal(t.Scale, precision, parquet.Int32Type), func(v *row.Value) parquet.Value { return parquet.Int32Value(int32(v.Big.Int64())) }
	case precision <= 18:
		return parquet.Decimal(t.Scale, precision, parquet.Int64Type), func(v *row.Value) parquet.Value { return parquet.Int64Value(v.Big.Int64()) }
	}
	size := 16
	if precision > 38 {
		size = 32
	}
	return parquet.Decimal(t.Scale, precision, parquet.FixedLenByteArrayType(size)), func(v *row.Value) parquet.Value {
		return parquet.FixedLenByteArrayValue(twosComplement(v.Big, size))
	}
}

// precisionOf reads the first argument of Decimal(p, s).
func precisionOf(t row.Type) int {
	_, args, _ := strings.Cut(t.Base, "(")
	first, _, _ := strings.Cut(args, ",")
	if p, err := strconv.Atoi(strings.TrimSpace(first)); err == nil && p > 0 {
		return p
	}
	return 76 // the most that a Decimal can have
}

func twosComplement(n *big.Int, size int) []byte {
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return n.FillBytes(make([]byte, size))
}

func (f *parquetFile) row(u job.Unit, values []*row.Value) error {
	r := make(parquet.Row, 0, len(fixed)+len(values))
	r = append(r,
		parquet.Int32Value(int32(u.Date.Unix()/(24*60*60))).Level(0, 0, 0),
		parquet.ByteArrayValue([]byte(u.Code)).Level(0, 0, 1),
		parquet.ByteArrayValue([]byte(u.Period.Period)).Level(0, 0, 2))
	for i, v := range values {
		c, at := &f.columns[i], len(r)
		if v != nil {
			if err := c.fits(v); err != nil {
				return err
			}
		}
		switch {
		case v == nil:
			r = append(r, parquet.NullValue().Level(0, 0, at))
		case c.optional:
			r = append(r, c.value(v).Level(0, 1, at))
		default:
			r = append(r, c.value(v).Level(0, 0, at))
		}
	}
	if f.rows = append(f.rows, r); len(f.rows) < batchRows {
		return nil
	}
	return f.flush()
}

func (f *parquetFile) flush() error {
	_, err := f.w.WriteRows(f.rows)
	f.rows = f.rows[:0]
	return err
}

func (f *parquetFile) close() error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.w.Close()
}
