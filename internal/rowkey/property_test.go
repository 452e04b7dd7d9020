package rowkey

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

var someTypes = []string{"UInt8", "UInt64", "Int16", "Int64", "Int128", "UInt256", "Bool", "Float32", "Float64", "Decimal(18, 3)", "String", "FixedString(2)",
	"Date", "DateTime", "DateTime64(3)", "Nullable(String)", "Nullable(Int64)", "LowCardinality(String)"}

// drawValue makes a value of a type; strings are of few bytes, so that
// collisions are likely.
func drawValue(t *rapid.T, typ row.Type) row.Value {
	v := row.Value{Kind: typ.Kind}
	if typ.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return row.Value{Kind: typ.Kind, Null: true}
	}
	small := rapid.Bool().Draw(t, "small")
	switch typ.Kind {
	case row.Bool:
		v.Num = rapid.Uint64Range(0, 1).Draw(t, "v")
	case row.UInt:
		v.Num = rapid.Uint64Range(0, math.MaxUint64>>(64-typ.Bits)).Draw(t, "v")
		if small {
			v.Num %= 120
		}
	case row.Int:
		v.Num = uint64(rapid.Int64Range(math.MinInt64>>(64-typ.Bits), math.MaxInt64>>(64-typ.Bits)).Draw(t, "v"))
		if small {
			v.Num = uint64(int64(v.Num) % 120)
		}
	case row.BigInt, row.Decimal:
		v.Big = big.NewInt(rapid.Int64Range(-100000, 100000).Draw(t, "v"))
		if typ.Kind == row.BigInt && !typ.Signed {
			v.Big.Abs(v.Big)
		}
	case row.Float:
		x := rapid.Float64().Draw(t, "v")
		if typ.Bits == 32 {
			x = float64(rapid.Float32().Draw(t, "v"))
		}
		v.Num = math.Float64bits(x)
	case row.Date:
		v.Num = uint64(rapid.Int64Range(-20000, 100000).Draw(t, "v"))
	case row.DateTime:
		v.Num = uint64(rapid.Int64Range(0, 4e9).Draw(t, "v") * powersOfTen[typ.Scale])
		if small { // around the end of summer time
			v.Num = uint64(rapid.Int64Range(1793000000, 1793010000).Draw(t, "v") * powersOfTen[typ.Scale])
		}
	default:
		n := rapid.IntRange(0, 4).Draw(t, "n")
		if typ.Length > 0 {
			n = typ.Length
		}
		v.Str = string(rapid.SliceOfN(rapid.SampledFrom([]byte("ab1-|%\x00\xff")), n, n).Draw(t, "v"))
	}
	return v
}

// drawConfig makes a job with up to three dimensions and a template that may
// or may not be provable.
func drawConfig(t *rapid.T) Config {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Periods: []job.Period{"DAY", "BY_LAST_DAYS_7", "BY_LAST_DAYS_77"}, Zone: berlin}
	literals := rapid.SampledFrom([]string{"|", "-", "", "1", "a", "%"})
	fields := []string{"{lvl}", "{tp}", "{date}"}
	all := []int{}
	for i := range rapid.IntRange(1, 3).Draw(t, "dims") {
		d := Dim{Name: fmt.Sprintf("d%d", i)}
		d.Type, err = row.ParseType(rapid.SampledFrom(someTypes).Draw(t, "type"))
		if err != nil {
			t.Fatal(err)
		}
		d.Null = rapid.SampledFrom([]job.NullPolicy{{}, {Mode: job.NullEmpty}, {Mode: job.NullLiteral, Literal: `\N`}}).Draw(t, "null policy")
		form := rapid.SampledFrom([]string{"", "", ":esc"}).Draw(t, "form")
		if d.Type.Kind == row.UInt || d.Type.Kind == row.Int {
			form = rapid.SampledFrom([]string{"", "", ":be8", ":be8s", ":020", ":esc"}).Draw(t, "form")
		}
		c.Dims = append(c.Dims, d)
		fields = append(fields, "{"+d.Name+form+"}")
		all = append(all, i)
	}
	c.Levels = []job.Level{{Code: "1", Dimensions: all}, {Code: "11", Dimensions: all[:1]}}
	if rapid.Bool().Draw(t, "salt") {
		c.Template, c.Salt = "{salt}", &job.Salt{Over: []int{0}, Buckets: 256}
	}
	for _, f := range rapid.Permutation(fields).Draw(t, "order") {
		c.Template += f + literals.Draw(t, "literal")
	}
	return c
}

type drawnRow struct {
	unit job.Unit
	dims []row.Value
}

func drawRow(t *rapid.T, c Config) drawnRow {
	r := drawnRow{unit: unit(rapid.IntRange(0, len(c.Levels)-1).Draw(t, "level"))}
	r.unit.Period.Period = rapid.SampledFrom(c.Periods).Draw(t, "period")
	r.unit.Date = r.unit.Date.AddDate(0, 0, rapid.IntRange(0, 2).Draw(t, "day"))
	for _, d := range c.Levels[r.unit.Level].Dimensions {
		r.dims = append(r.dims, drawValue(t, c.Dims[d].Type))
	}
	return r
}

// TestDecodeInvertsEncode: with any template that the prover accepts, decoding
// gives the row back. So distinct rows have distinct keys.
func TestDecodeInvertsEncode(t *testing.T) {
	accepted, encoded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		c, err := Compile(config)
		if err != nil {
			return
		}
		accepted++
		for range 20 {
			r := drawRow(t, config)
			key, err := c.AppendKey(nil, r.unit, r.dims)
			if err != nil {
				continue
			}
			encoded++
			k, err := c.Decode(key)
			if err != nil {
				t.Fatalf("%s: %v", config.Template, err)
			}
			got := drawnRow{unit(k.Level), k.Dims}
			got.unit.Period.Period, got.unit.Date = k.Period, k.Date
			if len(got.dims) == 0 {
				got.dims = nil
			}
			if d := cmp.Diff(r, got, cmp.AllowUnexported(drawnRow{}), cmp.Comparer(func(a, b *big.Int) bool {
				return a == b || a != nil && b != nil && a.Cmp(b) == 0
			})); d != "" {
				t.Fatalf("%s: %q\n%s", config.Template, key, d)
			}
		}
	})
	if accepted == 0 || encoded == 0 {
		t.Errorf("%d templates accepted, %d rows encoded: nothing was tested", accepted, encoded)
	}
}

// TestOrder: keys of the order-preserving forms sort as the values do.
func TestOrder(t *testing.T) {
	for _, tt := range []struct{ form, typ string }{{"be8", "UInt64"}, {"be4", "UInt32"}, {"be8s", "Int64"}, {"be4s", "Int32"}, {"020", "UInt64"}} {
		t.Run(tt.form, func(t *testing.T) {
			typ := typeOf(t, tt.typ)
			c := mustCompile(t, "{d:"+tt.form+"}", Dim{Name: "d", Type: typ})
			rapid.Check(t, func(t *rapid.T) {
				a, b := drawValue(t, typ), drawValue(t, typ)
				less := a.Num < b.Num
				if typ.Kind == row.Int {
					less = int64(a.Num) < int64(b.Num)
				}
				x, err1 := c.AppendKey(nil, unit(0), []row.Value{a})
				y, err2 := c.AppendKey(nil, unit(0), []row.Value{b})
				if err1 != nil || err2 != nil || less != (bytes.Compare(x, y) < 0) {
					t.Fatalf("%v %v: %x %x, %v %v", a, b, x, y, err1, err2)
				}
			})
		})
	}
}

// FuzzParse: no template makes the parser or the prover panic, and what is
// accepted can be decoded.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{salt}|{lvl}|{a}|{b:esc}", "{a:be8}{b}", "{{{a}}}{b}", `\x00{a}\\{b}`, "{a:010}-{b}", "{", "}", "{a:}", "{:a}"} {
		f.Add(s, uint64(42), "app")
	}
	f.Fuzz(func(t *testing.T, template string, n uint64, s string) {
		a, b := row.Type{Name: "UInt64", Base: "UInt64", Kind: row.UInt, Bits: 64}, row.Type{Name: "String", Base: "String", Kind: row.String}
		c, err := Compile(config(template, Dim{Name: "a", Type: a}, Dim{Name: "b", Type: b}))
		if err != nil {
			return
		}
		key, err := c.AppendKey(nil, unit(0), []row.Value{uintValue(n), text(s)})
		if err != nil {
			return
		}
		k, err := c.Decode(key)
		if err != nil || k.Dims[0].Num != n || k.Dims[1].Str != s {
			t.Fatalf("%q: %q decodes to %+v, %v", template, key, k, err)
		}
	})
}

// FuzzDecode: no bytes make Decode panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("00|11|42|app|DAY|2026-11-29"))
	a, b := row.Type{Name: "Int64", Base: "Int64", Kind: row.Int, Bits: 64}, row.Type{Name: "DateTime64(3)", Base: "DateTime64(3)", Kind: row.DateTime, Scale: 3}
	c, err := Compile(config("{salt}|{lvl}|{a}|{b:esc}|{tp}|{date}", Dim{Name: "a", Type: a}, Dim{Name: "b", Type: b}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		k, err := c.Decode(key)
		if err != nil {
			return
		}
		again, err := c.AppendKey(nil, job.Unit{Period: job.Span{Period: k.Period}, Date: k.Date}, k.Dims)
		if err != nil || !bytes.Equal(again, key) {
			t.Fatalf("%q decodes to %+v, which is %q (%v)", key, k, again, err)
		}
	})
}
