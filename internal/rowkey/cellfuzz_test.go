package rowkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// cellValue makes any bits a value of a type as a column can hold it.
func cellValue(typ row.Type, n uint64, b int64, s string) row.Value {
	v := fuzzValue(typ, n, s)
	switch {
	case typ.Nullable && n%3 == 0:
		return row.Value{Kind: typ.Kind, Null: true}
	case typ.Kind == row.Bool:
		v.Num = n & 1
	case typ.Kind == row.Date:
		v.Num = uint64(b % 100_000)
	case typ.Kind == row.DateTime:
		v.Num = uint64(b % 1e9)
	case typ.Kind == row.BigInt || typ.Kind == row.Decimal:
		v.Num, v.Big = 0, new(big.Int).Mul(big.NewInt(b), new(big.Int).SetUint64(n>>8))
		if typ.Kind == row.BigInt && !typ.Signed {
			v.Big.Abs(v.Big)
		}
	}
	return v
}

// FuzzCells: in each encoding a value reads back as what it is, and no bytes make
// decoding panic.
func FuzzCells(f *testing.F) {
	type cell struct {
		typ   row.Type
		e     job.Encoding
		cells *Cells
	}
	var all []cell
	encodings := []job.Encoding{job.EncodeText, job.EncodeInt32, job.EncodeInt64, job.EncodeFloat64, job.EncodeDecimal, job.EncodeBool}
	for p := phoenixUnsignedLong; p <= phoenixVarchar; p++ {
		encodings = append(encodings, job.Encoding(p.String()))
	}
	for _, name := range append(someTypes, "Decimal(76, 38)", "Int256", "DateTime64(9)", "Int32", "Nullable(Decimal(9, 2))") {
		typ := typeOf(f, name)
		for _, e := range encodings {
			null := job.NullPolicy{Mode: job.NullLiteral, Literal: "no value at all"}
			if c, err := CompileCells([]job.Metric{{Name: "m", Encode: e, Null: null}}, []row.Type{typ}, nil); err == nil {
				all = append(all, cell{typ, e, c})
			}
		}
	}
	f.Add(uint64(math.MaxUint64), int64(-5), "app", []byte("\x00\x00\x00\x02\xff"))
	f.Add(math.Float64bits(math.NaN()), int64(math.MinInt64), "a\xff", []byte("no value at all"))
	f.Add(uint64(1), int64(1), "", []byte("00000000")) // a double that no Float32 is
	f.Fuzz(func(t *testing.T, n uint64, b int64, s string, raw []byte) {
		for _, c := range all {
			if got, err := c.cells.DecodeCell(0, raw); err == nil {
				if _, err := json.Marshal(got); err != nil {
					t.Fatalf("%s as %s: %x is read as %v: %v", c.typ.Name, c.e, raw, got, err)
				}
			}
			v := cellValue(c.typ, n, b, s)
			written, present, err := c.cells.Append(nil, 0, []row.Value{v})
			if err != nil {
				continue // it does not fit
			}
			got, err := c.cells.DecodeCell(0, written)
			if err != nil || !present {
				t.Fatalf("%s as %s: %+v is %x: %v", c.typ.Name, c.e, v, written, err)
			}
			want := ValueJSON(c.typ, v, nil)
			if v.Str == "no value at all" && c.typ.Nullable {
				continue
			}
			if c.e == job.EncodeBool && c.typ.Kind == row.UInt {
				want = v.Num != 0
			}
			if !sameShown(got, want) {
				t.Fatalf("%s as %s: %x is read as %v, want %v", c.typ.Name, c.e, written, got, want)
			}
		}
	})
}

// sameShown compares what is shown of two values: numbers by what they are.
func sameShown(a, b any) bool {
	if _, isText := a.(string); isText {
		return a == b
	}
	x, okX := new(big.Rat).SetString(fmt.Sprint(a))
	y, okY := new(big.Rat).SetString(fmt.Sprint(b))
	if okX && okY {
		return x.Cmp(y) == 0
	}
	return a == b
}

// FuzzPacked: what is packed is JSON and reads back as what each value is
// alone; and no bytes make decoding panic.
func FuzzPacked(f *testing.F) {
	var types []row.Type
	var metrics []job.Metric
	policies := []job.NullPolicy{{}, {Mode: job.NullEmpty}, {Mode: job.NullLiteral, Literal: `\N`}}
	for i, name := range append(someTypes, "Decimal(76, 38)", "Int256", "DateTime64(9)", "Enum8('a' = 1)") {
		typ := typeOf(f, name)
		for _, encoding := range []job.Encoding{job.EncodeAuto, job.EncodeText} {
			types = append(types, typ)
			metrics = append(metrics, job.Metric{Name: "m" + strings.Repeat("m", len(metrics)), Encode: encoding, Null: policies[i%len(policies)]})
		}
	}
	c, err := PackCells(metrics, types, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(math.MaxUint64), int64(-5), "hex:00", []byte(`{"m":7}`))
	f.Add(math.Float64bits(math.NaN()), int64(1), "a\xff\"\\\n", []byte(`{"m":null,"mm":"\ud800"}`))
	f.Fuzz(func(t *testing.T, n uint64, b int64, s string, cell []byte) {
		values := make([]row.Value, len(types))
		for i, typ := range types {
			values[i] = cellValue(typ, n, b, s)
		}
		packed, _, err := c.Append(nil, 0, values)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(packed) || !utf8.Valid(packed) {
			t.Fatalf("%q is no JSON", packed)
		}
		got, err := c.Decode(func(int) ([]byte, bool) { return packed, true })
		if err != nil {
			t.Fatal(err)
		}
		for i, typ := range types {
			if literal := policies[2].Literal; values[i].Str == literal && metrics[i].Null.Literal == literal && typ.Nullable {
				continue // which the job file warns of
			}
			if want := ValueJSON(typ, values[i], nil); got[i] != want {
				t.Fatalf("%s: %v, want %v: %s", typ.Name, got[i], want, packed)
			}
		}
		if read, err := c.Decode(func(int) ([]byte, bool) { return cell, true }); err == nil && (len(read) != len(types) || !json.Valid(bytes.TrimSpace(cell))) {
			t.Fatalf("%q is read as %v", cell, read)
		}
	})
}

// FuzzPhoenixCell: no bytes make decoding panic, and what is read as a value
// is written as these bytes again, but for NaNs.
func FuzzPhoenixCell(f *testing.F) {
	var types []row.Type
	for _, name := range []string{"UInt64", "Int64", "Int128", "Float64", "Date32", "DateTime64(3)", "DateTime64(9)", "Decimal(18, 3)", "Decimal(76, 38)", "String"} {
		types = append(types, typeOf(f, name))
	}
	f.Add([]byte("\x80\x00\x01\xa2\x2c\x73\x80\x95\x00\x00\x30\x39"))
	f.Add([]byte("\x80\x01\x30\x30\x30\x30\x30\x30\x00\x30\x30\x30")) // later than 64 bits of nanoseconds reach
	f.Add([]byte("\x80\x00\x00\x30\x30\x30\x30\x32\x30\x30\x30\x30")) // more nanoseconds than a millisecond has
	f.Add([]byte("\x3c\x64\x4e\x38\x22\x66"))
	f.Fuzz(func(t *testing.T, cell []byte) {
		for _, typ := range types {
			for p := phoenixUnsignedLong; p <= phoenixVarchar; p++ {
				if p.check(typ) != "" {
					continue
				}
				v, err := p.parse(&typ, cell)
				if err != nil || isNaN(v) {
					continue
				}
				again, fits := p.append(nil, &typ, &v)
				if fits && p != phoenixDecimal && !bytes.Equal(again, cell) { // a DECIMAL can be written with zeros at its end
					t.Fatalf("%v of %s: %x is %+v, which is %x", p, typ.Name, cell, v, again)
				}
			}
		}
	})
}
