package rowkey

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

func TestText(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ typ, text string }{
		{"Bool", "true"}, {"UInt64", "18446744073709551615"}, {"Int8", "-128"}, {"UInt256", "115792089237316195423570985008687907853269984665640564039457584007913129639935"},
		{"Int128", "-170141183460469231731687303715884105728"}, {"Float64", "0.1"}, {"Float32", "0.1"}, {"Float64", "1e+21"}, {"Float64", "1e-05"}, {"Float64", "-0"},
		{"Float64", "NaN"}, {"Float64", "-Infinity"}, {"Float64", "100000000000000000000"}, {"Decimal(9, 2)", "-0.05"}, {"Decimal(9, 2)", "123.40"}, {"Decimal(9, 0)", "7"},
		{"Date", "2026-11-29"}, {"Date32", "1900-01-01"}, {"DateTime", "2026-07-01 00:00:00"}, {"DateTime64(3)", "1969-12-31 23:59:59.007"},
		{"DateTime64(9)", "2026-10-25 02:30:00.000000001"}, {"DateTime", "2026-10-25 02:30:00+01:00"}, {"DateTime", "2026-10-25 02:30:00"}, {"String", "x"}, {"FixedString(3)", "x\x00\x00"},
	} {
		typ := typeOf(t, tt.typ)
		v, err := ParseText(typ, tt.text, berlin)
		if err != nil {
			t.Error(err)
			continue
		}
		f := newFormatter(typ, berlin)
		if got := string(f.text(nil, &v)); got != tt.text {
			t.Errorf("%s %q is written as %q", tt.typ, tt.text, got)
		}
	}
}

func TestParseTextRefuses(t *testing.T) {
	for _, tt := range []struct{ typ, text string }{
		{"UInt8", "256"}, {"UInt8", "-1"}, {"UInt8", ""}, {"Int8", "x"}, {"Bool", "yes"}, {"Float64", "0x1p3"}, {"Float64", "nan?"}, {"Decimal(9, 2)", "1.234"},
		{"Decimal(9, 2)", "1.-2"}, {"Decimal(9, 2)", "."}, {"Date", "29.11.2026"}, {"DateTime", "now"}, {"DateTime", "2026-07-01 00:00:00.5"}, {"FixedString(1)", "xy"},
		{"UInt128", "-1"}, {"Int128", "170141183460469231731687303715884105728"},
	} {
		if v, err := ParseText(typeOf(t, tt.typ), tt.text, nil); err == nil {
			t.Errorf("%s %q is read as %+v", tt.typ, tt.text, v)
		}
	}
}

func TestCellErrors(t *testing.T) {
	for _, tt := range []struct {
		encoding job.Encoding
		typ      string
		value    row.Value
		want     string
	}{
		{job.EncodeAuto, "UInt64", uintValue(math.MaxUint64), "18446744073709551615"},
		{job.EncodeInt64, "UInt64", uintValue(1 << 63), "metric m"},
		{job.EncodeInt32, "Int64", row.Value{Kind: row.Int, Num: 1 << 31}, "2147483648"},
		{job.EncodeBool, "UInt8", uintValue(2), "bool"},
		{"phoenix_unsigned_long", "Int64", row.Value{Kind: row.Int, Num: math.MaxUint64}, "the value -1 of metric m does not fit the encoding phoenix_unsigned_long"},
		{"phoenix_unsigned_long", "UInt64", uintValue(1 << 63), "phoenix_unsigned_long"},
		{"phoenix_bigint", "UInt64", uintValue(1 << 63), "phoenix_bigint"},
		{"phoenix_integer", "Int64", row.Value{Kind: row.Int, Num: 1 << 31}, "phoenix_integer"},
		{"phoenix_decimal", "Decimal(76, 1)", row.Value{Kind: row.Decimal, Big: new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(39), nil), big.NewInt(1))}, "phoenix_decimal"},
		{"phoenix_date", "Date32", row.Value{Kind: row.Date, Num: 1 << 40}, "phoenix_date"},
		{"phoenix_timestamp", "DateTime64(0)", row.Value{Kind: row.DateTime, Num: 1 << 50}, "phoenix_timestamp"},
	} {
		c, err := CompileCells([]job.Metric{{Name: "m", Encode: tt.encoding}}, []row.Type{typeOf(t, tt.typ)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Append(nil, 0, []row.Value{tt.value})
		if failure.ClassOf(err) != failure.Source || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %s: %v", tt.encoding, tt.typ, err)
		}
	}
}

func TestCompileCellsRefuses(t *testing.T) {
	for _, tt := range []struct {
		metric job.Metric
		typ    string
	}{
		{job.Metric{Encode: job.EncodeInt64}, "String"}, {job.Metric{Encode: job.EncodeInt64}, "Float64"}, {job.Metric{Encode: job.EncodeInt32}, "DateTime"},
		{job.Metric{Encode: job.EncodeFloat64}, "UInt64"}, {job.Metric{Encode: job.EncodeDecimal}, "Float64"}, {job.Metric{Encode: job.EncodeBool}, "UInt16"},
		{job.Metric{Encode: "phoenix"}, "UInt8"}, {job.Metric{Encode: "phoenix_long"}, "UInt8"}, {job.Metric{Encode: "phoenix_"}, "UInt8"},
		{job.Metric{Encode: "phoenix_bigint"}, "String"}, {job.Metric{Encode: "phoenix_double"}, "UInt64"}, {job.Metric{Encode: "phoenix_date"}, "DateTime64(6)"},
		{job.Metric{Encode: "phoenix_timestamp"}, "UInt32"}, {job.Metric{Encode: "phoenix_decimal"}, "Float64"}, {job.Metric{Encode: "phoenix_varchar"}, "UInt64"}, {job.Metric{Null: job.NullPolicy{Mode: "no"}}, "UInt8"}, {job.Metric{}, "Nullable(UInt8)"},
	} {
		_, err := CompileCells([]job.Metric{tt.metric}, []row.Type{typeOf(t, tt.typ)}, nil)
		if failure.ClassOf(err) != failure.Usage {
			t.Errorf("%+v of %s: %v", tt.metric, tt.typ, err)
		}
	}
}

func TestNullCells(t *testing.T) {
	null := row.Value{Kind: row.UInt, Null: true}
	for _, tt := range []struct {
		policy  job.NullPolicy
		present bool
		cell    string
	}{{job.NullPolicy{}, false, ""}, {job.NullPolicy{Mode: job.NullEmpty}, true, ""}, {job.NullPolicy{Mode: job.NullLiteral, Literal: "null"}, true, "null"}} {
		c, err := CompileCells([]job.Metric{{Name: "m", Null: tt.policy}, {Name: "rows"}}, []row.Type{typeOf(t, "Nullable(UInt64)"), typeOf(t, "UInt64")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cell, present, err := c.Append(nil, 0, []row.Value{null, uintValue(1)})
		if err != nil || present != tt.present || string(cell) != tt.cell {
			t.Errorf("%v: %q, %v, %v", tt.policy, cell, present, err)
		}
		if v, err := c.DecodeCell(0, cell); present && (err != nil || v != nil) {
			t.Errorf("%v: Decode gives %v, %v", tt.policy, v, err)
		}
	}
}

// TestCellsDecode: each cell reads back as the number or text that its value
// has, and goes into JSON.
func TestCellsDecode(t *testing.T) {
	integers := []job.Encoding{job.EncodeAuto, job.EncodeText, job.EncodeDecimal, "phoenix_decimal"}
	small := append([]job.Encoding{"phoenix_bigint"}, integers...)
	encodings := map[row.Kind][]job.Encoding{row.UInt: small, row.Int: small, row.BigInt: integers, row.Decimal: integers,
		row.Float: {job.EncodeAuto, job.EncodeText, "phoenix_double"}, row.Bool: {job.EncodeAuto, job.EncodeText},
		row.String: {job.EncodeAuto, "phoenix_varchar"}, row.Date: {job.EncodeAuto, "phoenix_date", "phoenix_timestamp"}, row.DateTime: {job.EncodeAuto, "phoenix_date", "phoenix_timestamp"}}
	rapid.Check(t, func(t *rapid.T) {
		typ, err := row.ParseType(rapid.SampledFrom(someTypes).Draw(t, "type"))
		if err != nil || typ.Nullable {
			return
		}
		m := job.Metric{Name: "m"}
		if some := encodings[typ.Kind]; some != nil {
			m.Encode = rapid.SampledFrom(some).Draw(t, "encoding")
		}
		c, err := CompileCells([]job.Metric{m}, []row.Type{typ}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := drawValue(t, typ)
		cell, present, err := c.Append(nil, 0, []row.Value{v})
		if err != nil {
			if typ.Kind == row.UInt && v.Num > math.MaxInt64 {
				return
			}
			t.Fatal(err)
		}
		got, err := c.DecodeCell(0, cell)
		if err != nil || !present {
			t.Fatal(present, err)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatal(err)
		}
		shown := jsonText(got)
		if want := string(c.formats[0].text(nil, &v)); shown != want && !strings.HasPrefix(shown, "hex:") && typ.Kind != row.Float {
			t.Fatalf("%s %s: %q, want %q", typ.Name, m.Encode, shown, want)
		}
	})
}

func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
