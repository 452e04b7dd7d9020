package rowkey

import (
	"bytes"
	"math"
	"math/big"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// FuzzForms: in each order-preserving form a value decodes to itself and two
// values sort as their keys do.
func FuzzForms(f *testing.F) {
	f.Add(uint8(3), uint64(42), uint64(1<<63), "app", "a")
	f.Add(uint8(15), math.Float64bits(-0.5), math.Float64bits(1e300), "", "\xff")
	var codecs [][2]*Codec
	var types []row.Type
	for _, tt := range ordered {
		typ := typeOf(f, tt.typ)
		types = append(types, typ)
		codecs = append(codecs, [2]*Codec{mustCompile(f, orderedTemplate(tt.form, tt.behind, false), Dim{Name: "d", Type: typ}),
			mustCompile(f, orderedTemplate(tt.form, tt.behind, true), Dim{Name: "d", Type: typ})})
	}
	f.Fuzz(func(t *testing.T, form uint8, m, n uint64, r, s string) {
		i := int(form) % len(codecs)
		a, b := fuzzValue(types[i], m, r), fuzzValue(types[i], n, s)
		for way, c := range codecs[i] {
			x, err1 := c.AppendKey(nil, unit(0), []row.Value{a})
			y, err2 := c.AppendKey(nil, unit(0), []row.Value{b})
			if err1 != nil || err2 != nil {
				continue
			}
			if k, err := c.Decode(x); err != nil || !sameValue(k.Dims[0], a) {
				t.Fatalf("%s: %+v is %x, which decodes to %+v, %v", c.config.Template, a, x, k, err)
			}
			if isNaN(a) || isNaN(b) {
				continue
			}
			if want := compareValues(a, b) * (1 - 2*way); bytes.Compare(x, y) != want {
				t.Fatalf("%s: %v %v: %x %x, want %d", c.config.Template, a, b, x, y, want)
			}
		}
	})
}

func isNaN(v row.Value) bool { return v.Kind == row.Float && math.IsNaN(math.Float64frombits(v.Num)) }

// fuzzValue makes any bits a value of a type.
func fuzzValue(typ row.Type, n uint64, s string) row.Value {
	v := row.Value{Kind: typ.Kind, Num: n}
	switch typ.Kind {
	case row.UInt:
		v.Num &= math.MaxUint64 >> (64 - typ.Bits)
	case row.Int:
		v.Num = uint64(int64(n) << (64 - typ.Bits) >> (64 - typ.Bits))
	case row.Decimal:
		v.Num, v.Big = 0, big.NewInt(int64(n))
	case row.Float:
		if typ.Bits == 32 {
			v.Num = math.Float64bits(float64(math.Float32frombits(uint32(n))))
		}
	case row.String:
		v.Num, v.Str = 0, s
	}
	return v
}

// FuzzParse: no template makes the parser or the prover panic, what is accepted
// can be decoded, and rows that differ in a dimension have different keys,
// whatever their metrics are.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{salt}|{lvl}|{a}|{b:esc}", "{a:be8}{b}", "{{{a}}}{b}", `\x00{a}\\{b}`, "{a:010}-{b}", "{md5:a,b}{a:desc:be8}{b:phoenix_varchar}\\x00{date:be4}", "{b:rev}|{a:rev:be4s}",
		"{date:dd.MM.yyyy}{a:phoenix_decimal}\\x00{b}", "{m:desc:be8}{a:be8}{b}", "{b:esc}|{m:desc:phoenix_decimal}\\xff{a}", "{m:020}{m:desc:phoenix_bigint}{a}|{b}", "{", "}", "{a:}", "{:a}"} {
		f.Add(s, uint64(42), uint64(4), "app", "a")
	}
	integer, text := row.Type{Name: "UInt64", Base: "UInt64", Kind: row.UInt, Bits: 64}, row.Type{Name: "String", Base: "String", Kind: row.String}
	f.Fuzz(func(t *testing.T, template string, m, n uint64, r, s string) {
		plain := config(template, Dim{Name: "a", Type: integer}, Dim{Name: "b", Type: text})
		plain.Metrics = []row.Column{{Name: "m", Type: integer}}
		c, err := Compile(plain)
		if err != nil {
			return
		}
		rows := [][]row.Value{{uintValue(m), stringValue(r), uintValue(n)}, {uintValue(n), stringValue(s), uintValue(m)}, {uintValue(m), stringValue(s), uintValue(m)}}
		keys := map[string]int{}
		for i, values := range rows {
			key, err := c.AppendKey(nil, unit(0), values)
			if err != nil {
				continue
			}
			k, err := c.Decode(key)
			if err != nil || k.Dims[0].Num != values[0].Num || k.Dims[1].Str != values[1].Str {
				t.Fatalf("%q: %q decodes to %+v, %v", template, key, k, err)
			}
			if j, twice := keys[string(key)]; twice && (rows[j][0].Num != values[0].Num || rows[j][1].Str != values[1].Str) {
				t.Fatalf("%q: %+v and %+v have the key %q", template, rows[j], values, key)
			}
			keys[string(key)] = i
		}
	})
}

func stringValue(s string) row.Value { return row.Value{Kind: row.String, Str: s} }

// FuzzDecode: no bytes make Decode panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("00|11|42|app|DAY|2026-11-29"))
	a, b := row.Type{Name: "Int64", Base: "Int64", Kind: row.Int, Bits: 64}, row.Type{Name: "DateTime64(3)", Base: "DateTime64(3)", Kind: row.DateTime, Scale: 3}
	c, err := Compile(config("{salt}|{lvl}|{a}|{b:esc}|{tp}|{date}", Dim{Name: "a", Type: a}, Dim{Name: "b", Type: b}))
	if err != nil {
		f.Fatal(err)
	}
	var others []*Codec
	for _, tt := range ordered {
		others = append(others, mustCompile(f, orderedTemplate(tt.form, tt.behind, len(others)%2 == 0), Dim{Name: "d", Type: typeOf(f, tt.typ)}))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		for _, o := range others {
			if k, err := o.Decode(key); err == nil {
				if again, err := o.AppendKey(nil, unit(0), k.Dims); err != nil || !bytes.Equal(again, key) {
					t.Fatalf("%s: %x is %x (%v)", o.config.Template, key, again, err)
				}
			}
		}
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
