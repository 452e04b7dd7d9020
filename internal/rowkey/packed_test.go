package rowkey

import (
	"math"
	"math/big"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// packOne packs one metric m.
func packOne(t testing.TB, m job.Metric, typ row.Type) *Cells {
	t.Helper()
	m.Name = "m"
	c, err := PackCells([]job.Metric{m}, []row.Type{typ}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPacked: the bytes of each kind of value. want is the JSON after "m":.
func TestPacked(t *testing.T) {
	huge, _ := new(big.Int).SetString("-57896044618658097711785492504343953926634992332820282019728792003956564819968", 10)
	null := row.Value{Null: true}
	for _, tt := range []struct {
		typ   string
		value row.Value
		m     job.Metric
		want  string
	}{
		{"UInt64", uintValue(math.MaxUint64), job.Metric{}, "18446744073709551615"},
		{"UInt64", uintValue(math.MaxUint64), job.Metric{Encode: job.EncodeText}, `"18446744073709551615"`},
		{"Int64", row.Value{Kind: row.Int, Num: 1 << 63}, job.Metric{}, "-9223372036854775808"},
		{"Int256", row.Value{Kind: row.BigInt, Big: huge}, job.Metric{}, huge.String()},
		{"Decimal(9, 2)", row.Value{Kind: row.Decimal, Big: big.NewInt(-5)}, job.Metric{}, "-0.05"},
		{"Decimal(9, 2)", row.Value{Kind: row.Decimal, Big: big.NewInt(12340)}, job.Metric{}, "123.40"},
		{"Decimal(9, 2)", row.Value{Kind: row.Decimal, Big: big.NewInt(12340)}, job.Metric{Encode: job.EncodeText}, `"123.40"`},
		{"Float64", floatValue(0.1), job.Metric{}, "0.1"},
		{"Float64", floatValue(1e21), job.Metric{}, "1e+21"},
		{"Float64", floatValue(math.Copysign(0, -1)), job.Metric{}, "-0"},
		{"Float32", floatValue(float64(float32(0.1))), job.Metric{}, "0.1"},
		{"Float64", floatValue(math.NaN()), job.Metric{}, `"NaN"`},
		{"Float64", floatValue(math.Inf(1)), job.Metric{}, `"Infinity"`},
		{"Float64", floatValue(math.Inf(-1)), job.Metric{}, `"-Infinity"`},
		{"Bool", row.Value{Kind: row.Bool, Num: 1}, job.Metric{}, "true"},
		{"Date", row.Value{Kind: row.Date, Num: 20786}, job.Metric{}, `"2026-11-29"`},
		{"DateTime64(3)", row.Value{Kind: row.DateTime, Num: 1500}, job.Metric{}, `"1970-01-01 00:00:01.500"`},
		{"String", text("店|\"a\\b\"\n\x00<&>\x7f"), job.Metric{}, `"店|\"a\\b\"\u000a\u0000<&>` + "\x7f\""},
		{"String", text("a\xff"), job.Metric{}, `"hex:61ff"`},
		{"String", text("hex:61ff"), job.Metric{}, `"hex:6865783a36316666"`},
		{"String", text(""), job.Metric{}, `""`},
		{"Nullable(UInt8)", null, job.Metric{Null: job.NullPolicy{Mode: job.NullEmpty}}, "null"},
		{"Nullable(UInt8)", null, job.Metric{Null: job.NullPolicy{Mode: job.NullLiteral, Literal: `n/a "`}}, `"n/a \""`},
		{"Nullable(UInt8)", null, job.Metric{}, ""},
	} {
		typ := typeOf(t, tt.typ)
		c := packOne(t, tt.m, typ)
		want := "{}"
		if tt.want != "" {
			want = `{"m":` + tt.want + "}"
		}
		if !tt.value.Null {
			tt.value.Kind = typ.Kind
		}
		cell, present, err := c.Append([]byte("x"), 0, []row.Value{tt.value})
		if err != nil || !present || string(cell) != "x"+want {
			t.Errorf("%s %+v: %q, %v, %v, want %q", tt.typ, tt.value, cell, present, err, want)
			continue
		}
		got, err := c.Decode(func(int) ([]byte, bool) { return cell[1:], true })
		if shown := ValueJSON(typ, tt.value, nil); err != nil || len(got) != 1 || got[0] != shown {
			t.Errorf("%s: %s reads back as %v, %v, want %v", tt.typ, want, got, err, shown)
		}
	}
}

func floatValue(x float64) row.Value { return row.Value{Kind: row.Float, Num: math.Float64bits(x)} }

// TestPackedRow: members in the metrics' order, and readers that know JSON.
func TestPackedRow(t *testing.T) {
	c, err := PackCells([]job.Metric{{Name: "pv"}, {Name: "rate"}, {Name: "last", Null: job.NullPolicy{Mode: job.NullSkip}}, {Name: "src"}},
		[]row.Type{typeOf(t, "UInt64"), typeOf(t, "Float64"), typeOf(t, "Nullable(Date)"), typeOf(t, "String")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cell, _, err := c.Append(nil, 0, []row.Value{uintValue(7), floatValue(0.5), {Kind: row.Date, Null: true}, text("app")})
	if want := `{"pv":7,"rate":0.5,"src":"app"}`; err != nil || string(cell) != want {
		t.Errorf("%q, %v, want %q", cell, err, want)
	}
	if c.Len() != 1 || c.Metrics() != 4 {
		t.Errorf("%d cells, %d metrics", c.Len(), c.Metrics())
	}
	if got, err := c.Decode(func(int) ([]byte, bool) { return []byte(` {"src": "a", "pv": 7 , "rate":1.5} `), true }); err != nil || jsonText(got) != `[7,1.5,null,"a"]` {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPackedRefuses(t *testing.T) {
	for _, m := range []job.Metric{{Encode: job.EncodeInt64}, {Encode: "phoenix_bigint"}, {Null: job.NullPolicy{Mode: "no"}}} {
		if _, err := PackCells([]job.Metric{m}, []row.Type{typeOf(t, "UInt8")}, nil); failure.ClassOf(err) != failure.Usage {
			t.Errorf("%+v: %v", m, err)
		}
	}
	c := packOne(t, job.Metric{Null: job.NullPolicy{Mode: job.NullReject}}, typeOf(t, "Nullable(UInt8)"))
	if _, _, err := c.Append(nil, 0, []row.Value{{Kind: row.UInt, Null: true}}); failure.ClassOf(err) != failure.Source {
		t.Errorf("NULL: %v", err)
	}
	for _, cell := range []string{"", "{", "{}", "[]", "7", `{"m":7`, `{"m":7}x`, `{"m":7,"m":7}`, `{"n":7}`, `{"m":null}`, `{"m":[7]}`, `{"m":256}`, `{"m":"x"}`, `{"m":true}`, "{\"m\":\"\xff\"}", `{"m":7}{}`} {
		if got, err := c.Decode(func(int) ([]byte, bool) { return []byte(cell), true }); err == nil {
			t.Errorf("%q is read as %v", cell, got)
		}
	}
	if got, err := c.Decode(func(int) ([]byte, bool) { return nil, false }); err == nil {
		t.Errorf("no cell is read as %v", got)
	}
}
