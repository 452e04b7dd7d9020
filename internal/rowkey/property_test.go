package rowkey

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
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

var someSalts = []job.Salt{{}, {Over: []int{0}, Buckets: 256}, {Over: []int{0}, Buckets: 1000, Hash: job.SaltMurmur3, Binary: true}, {Over: []int{0}, Prefix: 3, Hash: job.SaltCRC32},
	{Over: []int{0}, Prefix: 2, Hash: job.SaltFNV1a, Binary: true}, {Buckets: 16, Hash: job.SaltPhoenix, Binary: true}}

// formsOf are the forms of a type besides those of its text.
func formsOf(t row.Type) []string {
	numbers := []string{":be2", ":be4", ":be8", ":be8s", ":desc:be8s", ":rev:be8", ":020", ":desc:020"}
	switch t.Kind {
	case row.UInt, row.Int:
		return append(numbers, ":be1", ":phoenix_bigint", ":phoenix_unsigned_long", ":desc:phoenix_integer", ":phoenix_decimal", ":desc:phoenix_decimal")
	case row.BigInt, row.Decimal:
		return []string{":phoenix_decimal", ":desc:phoenix_decimal"}
	case row.Float:
		if t.Bits == 32 {
			return []string{":float4", ":desc:float4", ":float8", ":phoenix_double"}
		}
		return []string{":float8", ":desc:float8", ":phoenix_double"}
	case row.Date:
		return append(numbers, ":yyyyMMdd", ":MM/dd yyyy", ":desc:yyyy_MM_dd", ":phoenix_date", ":phoenix_timestamp")
	case row.DateTime:
		return append(numbers, ":phoenix_date", ":desc:phoenix_timestamp")
	}
	return []string{":phoenix_varchar", ":desc:phoenix_varchar"}
}

// drawConfig makes a job with up to three dimensions and a template that may
// or may not be provable.
func drawConfig(t *rapid.T) Config {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Periods: []job.Period{"DAY", "BY_LAST_DAYS_7", "BY_LAST_DAYS_77"}, Zone: berlin}
	literals := rapid.SampledFrom([]string{"|", "-", "", "1", "a", "%", `\x00`, `\xff`})
	fields := []string{"{lvl}", "{tp}", "{date" + rapid.SampledFrom([]string{"", ":dd.MM.yyyy", ":desc", ":be4", ":06", ":rev:yyyyMMdd", ":phoenix_date"}).Draw(t, "date") + "}"}
	all := []int{}
	for i := range rapid.IntRange(1, 3).Draw(t, "dims") {
		d := Dim{Name: fmt.Sprintf("d%d", i)}
		d.Type, err = row.ParseType(rapid.SampledFrom(someTypes).Draw(t, "type"))
		if err != nil {
			t.Fatal(err)
		}
		d.Null = rapid.SampledFrom([]job.NullPolicy{{}, {Mode: job.NullEmpty}, {Mode: job.NullLiteral, Literal: `\N`}}).Draw(t, "null policy")
		form := rapid.SampledFrom(append([]string{"", "", ":esc", ":rev", ":rev:esc"}, formsOf(d.Type)...)).Draw(t, "form")
		c.Dims = append(c.Dims, d)
		fields = append(fields, "{"+d.Name+form+"}")
		all = append(all, i)
	}
	c.Levels = []job.Level{{Code: "1", Dimensions: all}, {Code: "11", Dimensions: all[:1]}}
	if rapid.Bool().Draw(t, "md5") {
		fields = append(fields, "{md5:d0}")
	}
	if salt := rapid.SampledFrom(someSalts).Draw(t, "salt"); salt.Buckets+salt.Prefix > 0 {
		c.Template, c.Salt = "{salt}", &salt
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
			if d := gocmp.Diff(r, got, gocmp.AllowUnexported(drawnRow{}), gocmp.Comparer(func(a, b *big.Int) bool {
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

// ordered are the forms whose keys sort as the values do, or backwards. Where
// the width varies the byte behind belongs to it.
var ordered = []struct{ form, typ, behind string }{
	{"be1", "UInt8", ""}, {"be2", "UInt16", ""}, {"be4", "UInt32", ""}, {"be8", "UInt64", ""}, {"020", "UInt64", ""},
	{"be1s", "Int8", ""}, {"be2s", "Int16", ""}, {"be4s", "Int32", ""}, {"be8s", "Int64", ""}, {"be4", "DateTime", ""}, {"be8s", "DateTime64(3)", ""},
	{"be4s", "Date32", ""}, {"yyyyMMdd", "Date32", ""}, {"float4", "Float32", ""}, {"float8", "Float32", ""}, {"float8", "Float64", ""},
	{"phoenix_unsigned_long", "UInt32", ""}, {"phoenix_bigint", "Int64", ""}, {"phoenix_integer", "Int32", ""}, {"phoenix_double", "Float64", ""},
	{"phoenix_date", "Date32", ""}, {"phoenix_date", "DateTime64(3)", ""}, {"phoenix_timestamp", "DateTime64(9)", ""},
	{"phoenix_decimal", "Decimal(18, 3)", `\x00`}, {"phoenix_decimal", "Int64", `\x00`}, {"phoenix_varchar", "String", `\x00`},
}

// orderedTemplate puts a form into a template, forwards or backwards.
func orderedTemplate(form, behind string, backwards bool) string {
	if !backwards {
		return "{d:" + form + "}" + behind
	}
	return "{d:desc:" + form + "}" + strings.ReplaceAll(behind, "00", "ff")
}

// compareValues is the order of two values of one type.
func compareValues(a, b row.Value) int {
	switch a.Kind {
	case row.UInt:
		return cmp.Compare(a.Num, b.Num)
	case row.Float:
		x, y := math.Float64frombits(a.Num), math.Float64frombits(b.Num)
		if x == y { // 0 and -0
			return cmp.Compare(int64(a.Num), int64(b.Num))
		}
		return cmp.Compare(x, y)
	case row.BigInt, row.Decimal:
		return a.Big.Cmp(b.Big)
	case row.String:
		return strings.Compare(a.Str, b.Str)
	}
	return cmp.Compare(int64(a.Num), int64(b.Num))
}

// TestOrder: keys of the order-preserving forms sort as the values do.
func TestOrder(t *testing.T) {
	for _, tt := range ordered {
		for _, backwards := range []bool{false, true} {
			template := orderedTemplate(tt.form, tt.behind, backwards)
			t.Run(template+" of "+tt.typ, func(t *testing.T) {
				typ := typeOf(t, tt.typ)
				c := mustCompile(t, template, Dim{Name: "d", Type: typ})
				compared := 0
				rapid.Check(t, func(t *rapid.T) {
					a, b := drawValue(t, typ), drawValue(t, typ)
					want := compareValues(a, b)
					if backwards {
						want = -want
					}
					x, err1 := c.AppendKey(nil, unit(0), []row.Value{a})
					y, err2 := c.AppendKey(nil, unit(0), []row.Value{b})
					if err1 != nil || err2 != nil {
						return // a text with a zero byte, a time before 1970
					}
					compared++
					if bytes.Compare(x, y) != want {
						t.Fatalf("%v %v: %x %x, want %d", a, b, x, y, want)
					}
				})
				if compared < 20 {
					t.Errorf("%d pairs compared", compared)
				}
			})
		}
	}
}
