package rowkey

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// sampleValue is a value of a type as tables hold them.
func sampleValue(t testing.TB, typ row.Type) row.Value {
	t.Helper()
	text := map[row.Kind]string{row.Bool: "true", row.UInt: "42", row.Int: "-42", row.BigInt: "170141183460469231731", row.Float: "-12.5",
		row.Decimal: "-123456789012345678901.23", row.Date: "2026-11-29", row.DateTime: "2026-10-25 02:30:00", row.String: "app|店"}[typ.Kind]
	if typ.Length > 0 {
		text = "0123456789abcdef"[:typ.Length]
	}
	if typ.Base == "UUID" {
		text = "61f0c404-5cb3-11e7-907b-a6006ad3dba0"
	}
	v, err := ParseText(typ, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestKeysDoNotAllocate: a key is written into the caller's memory and nowhere else.
func TestKeysDoNotAllocate(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	type form struct{ field, typ string }
	var forms []form
	for _, typ := range []string{"UInt32", "Int64", "Float64", "Float32", "Date", "DateTime", "DateTime64(3)", "String", "FixedString(8)", "UUID", "Decimal(38, 3)", "Int128", "Bool", "LowCardinality(String)"} {
		for _, f := range []string{"", ":esc", ":rev"} {
			forms = append(forms, form{"{d" + f + "}", typ})
		}
	}
	for _, typ := range []string{"UInt64", "Date", "DateTime"} {
		for _, f := range []string{"be8", "desc:be8", "be8s", "020", "desc:020", "rev:be8"} {
			forms = append(forms, form{"{d:" + f + "}", typ})
		}
	}
	for _, tt := range ordered {
		forms = append(forms, form{"{d:" + tt.form + "}" + tt.behind, tt.typ}, form{orderedTemplate(tt.form, tt.behind, true), tt.typ})
	}
	for _, f := range forms {
		typ := typeOf(t, f.typ)
		for _, salt := range append(someSalts, job.Salt{Over: []int{0}, Buckets: 64}) {
			c := config(f.field+"|{lvl}{tp}{date}", Dim{Name: "d", Type: typ})
			c.Zone = berlin
			if salt.Buckets+salt.Prefix > 0 {
				c.Template, c.Salt = "{salt}"+c.Template, &salt
			}
			codec, err := Compile(c)
			if err != nil {
				continue // {d:rev} beside the literal
			}
			values := []row.Value{sampleValue(t, typ)}
			if f.typ == "Int64" || f.typ == "Int32" {
				values[0].Num &= math.MaxInt32
			}
			doesNotAllocate(t, f.typ+" in "+c.Template, func(dst []byte) ([]byte, error) { return codec.AppendKey(dst, unit(0), values) })
		}
	}
}

// TestCellsDoNotAllocate is the same of cells, packed ones too.
func TestCellsDoNotAllocate(t *testing.T) {
	var encodings = []job.Encoding{job.EncodeAuto, job.EncodeText, job.EncodeInt32, job.EncodeInt64, job.EncodeFloat64, job.EncodeDecimal, job.EncodeBool}
	for p := phoenixUnsignedLong; p <= phoenixVarchar; p++ {
		encodings = append(encodings, job.Encoding(p.String()))
	}
	seen := map[job.Encoding]bool{}
	for _, name := range append(someTypes, "Decimal(38, 3)", "Decimal(18, 2)", "Int32") {
		typ := typeOf(t, name)
		typ.Nullable = false
		values := []row.Value{sampleValue(t, typ)}
		for _, e := range encodings {
			if c, err := CompileCells([]job.Metric{{Name: "m", Encode: e}}, []row.Type{typ}, nil); err == nil {
				if typ.Kind == row.Int && e == "phoenix_unsigned_long" {
					values[0].Num = 42
				}
				if _, _, err := c.Append(nil, 0, values); err != nil {
					continue // it does not fit
				}
				seen[e] = true
				doesNotAllocate(t, name+" as "+string(e), func(dst []byte) ([]byte, error) { dst, _, err := c.Append(dst, 0, values); return dst, err })
			}
			if c, err := PackCells([]job.Metric{{Name: "m", Encode: e}}, []row.Type{typ}, nil); err == nil {
				doesNotAllocate(t, name+" packed as "+string(e), func(dst []byte) ([]byte, error) { dst, _, err := c.Append(dst, 0, values); return dst, err })
			}
		}
	}
	if len(seen) != len(encodings) {
		t.Errorf("only these were tested: %v", seen)
	}
}

func doesNotAllocate(t *testing.T, what string, encode func(dst []byte) ([]byte, error)) {
	t.Helper()
	dst := make([]byte, 0, 1024)
	if _, err := encode(dst); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if n := testing.AllocsPerRun(20, func() { dst, _ = encode(dst[:0]) }); n != 0 {
		t.Errorf("%s: %v allocations", what, n)
	}
}

// BenchmarkEncode encodes rows as the sink does, key and cells, into memory that is used again.
func BenchmarkEncode(b *testing.B) {
	decimal, _ := new(big.Int).SetString("12345678901234567", 10)
	for _, bb := range []struct {
		name, template string
		salt           *job.Salt
		metrics        int
		pack           bool
	}{
		{"text/1", "{salt}|{lvl}|{shop}|{source:esc}|{tp}|{date}", &job.Salt{Over: []int{0}, Buckets: 64}, 1, false},
		{"text/3", "{salt}|{lvl}|{shop}|{source:esc}|{tp}|{date}", &job.Salt{Over: []int{0}, Buckets: 64}, 3, false},
		{"text/10", "{salt}|{lvl}|{shop}|{source:esc}|{tp}|{date}", &job.Salt{Over: []int{0}, Buckets: 64}, 10, false},
		{"binary/3", "{salt}{shop:be8}{date:be4}{source:esc}", &job.Salt{Over: []int{0}, Buckets: 64, Hash: job.SaltMurmur3, Binary: true}, 3, false},
		{"phoenix/3", "{salt}{shop:phoenix_unsigned_long}{date:phoenix_date}{source:phoenix_varchar}", &job.Salt{Hash: job.SaltPhoenix, Buckets: 16, Binary: true}, 3, false},
		{"ranking/3", "{lvl}|{tp}|{date}|{m0:desc:be8}{shop}|{source:esc}", nil, 3, false},
		{"packed/10", "{salt}|{lvl}|{shop}|{source:esc}|{tp}|{date}", &job.Salt{Over: []int{0}, Buckets: 64}, 10, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := config(bb.template, Dim{Name: "shop", Type: typeOf(b, "UInt64")}, Dim{Name: "source", Type: typeOf(b, "String")})
			c.Salt = bb.salt
			values := []row.Value{uintValue(123456), text("app")}
			var metrics []job.Metric
			var types []row.Type
			for i := range bb.metrics {
				typ, v := typeOf(b, "UInt64"), uintValue(uint64(i)*1_000_003)
				switch i % 4 {
				case 1:
					typ, v = typeOf(b, "Float64"), floatValue(float64(i)/7)
				case 2:
					typ, v = typeOf(b, "Decimal(38, 2)"), row.Value{Kind: row.Decimal, Big: decimal}
				}
				metrics, types, values = append(metrics, job.Metric{Name: fmt.Sprint("m", i)}), append(types, typ), append(values, v)
				c.Metrics = append(c.Metrics, row.Column{Name: fmt.Sprint("m", i), Type: typ})
			}
			keys, err := Compile(c)
			if err != nil {
				b.Fatal(err)
			}
			cells, err := CompileCells(metrics, types, nil)
			if bb.pack {
				cells, err = PackCells(metrics, types, nil)
			}
			if err != nil {
				b.Fatal(err)
			}
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out, err = keys.AppendKey(out[:0], unit(0), values)
				for i := 0; i < cells.Len() && err == nil; i++ {
					out, _, err = cells.Append(out, i, values[2:])
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(len(out)), "bytes/row")
		})
	}
}

// TestBigNumbers: appended numbers are those of math/big.
func TestBigNumbers(t *testing.T) {
	check := func(x *big.Int) {
		t.Helper()
		for _, n := range []*big.Int{x, new(big.Int).Neg(x)} {
			if got := string(appendBig([]byte("x"), n)); got != "x"+n.String() {
				t.Errorf("%s is written as %s", n, got)
			}
			for _, scale := range []int{1, 5, 76} {
				want := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
				if got := string(decimalText([]byte("x"), n, scale)); got != "x"+want {
					t.Errorf("%s of scale %d is written as %s, want %s", n, scale, got, want)
				}
			}
		}
	}
	for bit := range uint(300) {
		x := new(big.Int).Lsh(big.NewInt(1), bit)
		check(x)
		check(new(big.Int).Sub(x, big.NewInt(1)))
	}
	for digits := range int64(90) {
		x := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
		check(x)
		check(new(big.Int).Sub(x, big.NewInt(1)))
		check(new(big.Int).Mul(x, big.NewInt(7)))
	}
}
