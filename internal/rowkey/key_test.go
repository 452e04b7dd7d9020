package rowkey

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

func unit(level int) job.Unit {
	return job.Unit{Level: level, Period: job.Span{Period: "DAY"}, Date: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}
}

// config is a job of one level of all dimensions, salted over the first if the
// template says so.
func config(template string, dims ...Dim) Config {
	c := Config{Template: template, Dims: dims, Levels: []job.Level{{Code: "11"}}, Periods: []job.Period{"DAY"}}
	for i := range dims {
		c.Levels[0].Dimensions = append(c.Levels[0].Dimensions, i)
	}
	if strings.Contains(template, "{salt}") {
		c.Salt = &job.Salt{Over: []int{0}, Buckets: 64}
	}
	return c
}

func mustCompile(t testing.TB, template string, dims ...Dim) *Codec {
	t.Helper()
	c, err := Compile(config(template, dims...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func uintValue(n uint64) row.Value { return row.Value{Kind: row.UInt, Num: n} }
func text(s string) row.Value      { return row.Value{Kind: row.String, Str: s} }

func TestKey(t *testing.T) {
	shop, source := Dim{Name: "shop_id", Type: typeOf(t, "UInt64")}, Dim{Name: "source", Type: typeOf(t, "String")}
	nullable := Dim{Name: "source", Type: typeOf(t, "LowCardinality(Nullable(String))"), Null: job.NullPolicy{Mode: job.NullLiteral, Literal: `\N`}}
	for _, tt := range []struct {
		template string
		dims     []Dim
		values   []row.Value
		want     string
	}{
		{"{salt}|{lvl}|{shop_id}|{source}|{tp}|{date}", []Dim{shop, source}, []row.Value{uintValue(42), text("a|b")}, "00|11|42|a|b|DAY|2026-11-29"},
		{"{shop_id:010}{source}", []Dim{shop, source}, []row.Value{uintValue(42), text("app")}, "0000000042app"},
		{"{source:esc}/{shop_id}", []Dim{shop, source}, []row.Value{uintValue(42), text("a/b c店")}, "a%2Fb%20c%E5%BA%97/42"},
		{"{source:esc}|{shop_id}", []Dim{shop, nullable}, []row.Value{uintValue(42), {Kind: row.String, Null: true}}, `\N|42`},
		{"{source:esc}|{shop_id}", []Dim{shop, nullable}, []row.Value{uintValue(42), text(`\N`)}, `%5CN|42`},
		{`{{x}}\\\x00{date:yyyyMMdd}{shop_id:be4}{source}`, []Dim{shop, source}, []row.Value{uintValue(258), text("")}, "{x}\\\x0020261129\x00\x00\x01\x02"},
	} {
		c := mustCompile(t, tt.template, tt.dims...)
		key, err := c.AppendKey([]byte("before"), unit(0), tt.values)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		key = bytes.TrimPrefix(key, []byte("before"))
		if strings.HasPrefix(tt.want, "00|") {
			tt.want = string(key[:2]) + tt.want[2:] // the salt is checked against Java's
		}
		if string(key) != tt.want {
			t.Errorf("%s: %q, want %q", tt.template, key, tt.want)
		}
		k, err := c.Decode(key)
		if err != nil || !cmp.Equal(k.Dims, tt.values) {
			t.Errorf("%s: Decode gives %+v, %v", tt.template, k, err)
		}
	}
}

// TestLevels: a level without a dimension writes it as nothing.
func TestLevels(t *testing.T) {
	c := config("{salt}|{lvl}|{shop_id:be4}|{n:05}|{source}|{tp}", Dim{Name: "shop_id", Type: typeOf(t, "UInt32")},
		Dim{Name: "n", Type: typeOf(t, "UInt8")}, Dim{Name: "source", Type: typeOf(t, "String")})
	c.Levels = []job.Level{{Code: "all", Dimensions: []int{2, 0, 1}}, {Code: "s", Dimensions: []int{2}}, {Code: "none"}}
	c.Periods = []job.Period{"DAY", "BY_LAST_DAYS_30"}
	codec, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	if w := codec.Warnings(); len(w) != 3 || codec.HasDate() {
		t.Errorf("warnings %q", w)
	}
	for level, dims := range [][]row.Value{{text("x"), uintValue(1), uintValue(2)}, {text("x")}, {}} {
		u := unit(level)
		u.Period.Period = "BY_LAST_DAYS_30"
		key, err := codec.AppendKey(nil, u, dims)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"|all|\x00\x00\x00\x01|00002|x|", "|s|\x00\x00\x00\x00|00000|x|", "|none|\x00\x00\x00\x00|00000||"}[level] + "BY_LAST_DAYS_30"
		if string(key[2:]) != want {
			t.Errorf("level %d: %q, want %q", level, key, want)
		}
		k, err := codec.Decode(key)
		if err != nil || k.Level != level || k.Period != "BY_LAST_DAYS_30" || k.HasDate || len(k.Dims) != len(dims) {
			t.Errorf("level %d: Decode gives %+v, %v", level, k, err)
		}
	}
}

// TestRefused: what Compile must not accept, and what it says.
func TestRefused(t *testing.T) {
	shop, source, other := Dim{Name: "shop_id", Type: typeOf(t, "UInt64")}, Dim{Name: "source", Type: typeOf(t, "String")}, Dim{Name: "other", Type: typeOf(t, "String")}
	signed := Dim{Name: "n", Type: typeOf(t, "Int64")}
	maybe := Dim{Name: "m", Type: typeOf(t, "Nullable(UInt64)"), Null: job.NullPolicy{Mode: job.NullEmpty}}
	two := func(c Config) Config {
		c.Levels = []job.Level{{Code: "1", Dimensions: []int{0}}, {Code: "11", Dimensions: []int{0}}}
		return c
	}
	for _, tt := range []struct {
		config Config
		want   []string
	}{
		{config("{source}|{other}", source, other), []string{"{source}", "{other}", `source="a" with other="a|`, "the same key", "{source:esc}"}},
		{config("{shop_id}{source}", shop, source), []string{`shop_id="1" with source="1`, "separator"}},
		{config("{source}{shop_id:be8}{other}", shop, source, other), []string{"the same key"}},
		{two(config("{lvl}{shop_id}", shop)), []string{"{lvl} ends", "the same key"}},
		{two(config("{shop_id}", shop)), []string{"2 levels", "{lvl} is missing"}},
		{config("{shop_id}", shop, source), []string{"{source} is missing"}},
		{config("{shp_id}", shop), []string{"column 1", "did you mean {shop_id}"}},
		{config("{shop_id:desc}", shop), []string{"needs a form of fixed width", "{shop_id:desc:be8}"}},
		{config("{source:desc:esc}", source), []string{"needs a form of fixed width"}},
		{config("{shop_id:desc:}", shop), []string{"unknown form"}},
		{config("{shop_id:rev:desc:be8}", shop), []string{"unknown form"}},
		{config("{shop_id:le8}", shop), []string{"unknown form", ":rev"}},
		{config("{shop_id:be3}", shop), []string{"unknown form", "{shop_id:be"}},
		{config("{md5}{shop_id}", shop), []string{"needs the names of dimensions", "shop_id"}},
		{config("{md5:shop_id,shop_id}{shop_id}", shop), []string{"each once"}},
		{config("{md5:source}{shop_id}", shop, source), []string{"{source} is missing"}},
		{config("{md5:shop_id}", shop), []string{"{shop_id} is missing"}},
		{config("{salt:be1}{shop_id}", shop), []string{"has no forms"}},
		{config("{source:float8}", source), []string{"cannot hold source", "toFloat64"}},
		{config("{f:float4}", Dim{Name: "f", Type: typeOf(t, "Float64")}), []string{"{f:float8}"}},
		{config("{at:yyyyMMdd}", Dim{Name: "at", Type: typeOf(t, "DateTime")}), []string{"needs a date", "toDate", "{at:be8}"}},
		{config("{shop_id:yyyyMMdd}", shop), []string{"needs a date"}},
		{config("{date:yyyyMM}{shop_id}", shop), []string{"dd is missing"}},
		{config("{date:yyyyMMddHH}{shop_id}", shop), []string{"once each"}},
		{config("{date:yyyyMMdddd}{shop_id}", shop), []string{"once each"}},
		{config("{date:be1}{shop_id}", shop), []string{"too narrow"}},
		{config("{date:04}{shop_id}", shop), []string{"too narrow"}},
		{config("{date:esc}{shop_id}", shop), []string{"not a form of the date"}},
		{config("{source:phoenix_bigint}", source), []string{"cannot hold source", "toInt64"}},
		{config("{shop_id:phoenix_varchar}", shop), []string{"toString"}},
		{config("{shop_id:phoenix_long}", shop), []string{"unknown form", "did you mean"}},
		{config("{at:phoenix_date}", Dim{Name: "at", Type: typeOf(t, "DateTime64(6)")}), []string{"phoenix_timestamp"}},
		{config("{source:phoenix_varchar}{other}", source, other), []string{"the same key"}},
		{config(`{source:desc:phoenix_varchar}\x00{other}`, source, other), []string{"cannot be told"}},
		{config("{source:rev}{other}", source, other), []string{"the same key"}},
		{config("{shop_id:ecs}", shop), []string{"unknown form", "{shop_id:esc}"}},
		{config("{source:be8}", source), []string{"needs an integer"}},
		{config("x{shop_id", shop), []string{"column 2", "no }"}},
		{config("x}{shop_id}", shop), []string{"column 2", "}}"}},
		{config(`\n{shop_id}`, shop), []string{"unknown escape"}},
		{config("{m:be8}", maybe), []string{"NULL of m", "8 bytes"}},
		{config("{date}", Dim{Name: "date", Type: shop.Type}), []string{"rename it"}},
		{config("{n}{n}{shop_id}", signed, shop), []string{"separator"}},
	} {
		_, err := Compile(tt.config)
		if failure.ClassOf(err) != failure.Usage {
			t.Errorf("%s: %v, class %v", tt.config.Template, err, failure.ClassOf(err))
			continue
		}
		for _, want := range tt.want {
			if said := err.Error() + " → " + failure.Remedy(err); !strings.Contains(said, want) {
				t.Errorf("%s: no %q in: %s", tt.config.Template, want, said)
			}
		}
	}
	salted := config("{salt}{shop_id}", shop)
	salted.Salt = nil
	if _, err := Compile(salted); err == nil {
		t.Error("a salt without definition was accepted")
	}
	salted = config("{shop_id}", shop)
	salted.Salt = &job.Salt{Over: []int{0}, Buckets: 4}
	if _, err := Compile(salted); err == nil {
		t.Error("a salt that is not in the template was accepted")
	}
}

// TestAccepted: templates whose proof is not obvious.
func TestAccepted(t *testing.T) {
	dims := map[string]Dim{}
	for name, typ := range map[string]string{"u": "UInt64", "i": "Int32", "j": "Int64", "s": "String", "r": "String", "f": "Float64", "d": "Date",
		"t": "DateTime", "uuid": "UUID", "fs": "FixedString(3)", "dec": "Decimal(10, 2)", "b": "Bool"} {
		dims[name] = Dim{Name: name, Type: typeOf(t, typ)}
	}
	for template, names := range map[string]string{
		"{i}-{j}": "i j", "{u:05}{s}": "u s", "{fs}{s}": "fs s", "{s}{d}{uuid}": "s d uuid", "{u}|{s}|{i}": "u s i",
		"{s:esc}|{r}": "s r", "{s:phoenix_varchar}\\x00{r}": "s r",
		`{s:desc:phoenix_varchar}\xff{dec:phoenix_decimal}\x00{r}`: "s dec r", "{f:float8}{s}": "f s", "{i:rev}|{s}": "i s", "{u:rev:010}{s}": "u s", "{md5:s,u}{u:be2}{s}": "u s",
		"{date:be4}{date:desc:dd.MM.yyyy}{s}": "s", "{d:yyyyMMdd}{s}": "d s", "{t:phoenix_timestamp}{s}": "t s", "{t:desc:be8}{s}": "t s", "{s}|{r:esc}": "s r", "{u}:{s}:{dec}": "u s dec", "{t}|{s}": "t s", "{b}{u}": "b u", "{f}|{s}": "f s",
	} {
		var used []Dim
		for n := range strings.FieldsSeq(names) {
			used = append(used, dims[n])
		}
		mustCompile(t, template, used...)
	}
}

func TestNull(t *testing.T) {
	dim := Dim{Name: "s", Type: typeOf(t, "Nullable(String)")}
	null := row.Value{Kind: row.String, Null: true}
	_, err := mustCompile(t, "x{s}", dim).AppendKey(nil, unit(0), []row.Value{null})
	if failure.ClassOf(err) != failure.Source || !strings.Contains(err.Error(), "dimension s is NULL") {
		t.Errorf("reject: %v", err)
	}
	for _, policy := range []job.NullPolicy{{Mode: job.NullEmpty}, {Mode: job.NullLiteral, Literal: "none"}} {
		dim.Null = policy
		c := mustCompile(t, "x{s}", dim)
		key, err := c.AppendKey(nil, unit(0), []row.Value{null})
		if err != nil || string(key) != "x"+policy.Literal {
			t.Errorf("%v: %q, %v", policy, key, err)
		}
		k, err := c.Decode(key)
		if err != nil || !k.Dims[0].Null {
			t.Errorf("%v: Decode gives %+v, %v", policy, k, err)
		}
		_, err = c.AppendKey(nil, unit(0), []row.Value{text(policy.Literal)})
		if failure.ClassOf(err) != failure.Source || !strings.Contains(err.Error(), "dimension s") {
			t.Errorf("%v: a value that looks like NULL gives %v", policy, err)
		}
	}
}

func TestBadValues(t *testing.T) {
	for _, tt := range []struct {
		template, typ string
		value         row.Value
	}{
		{"{d:03}", "UInt64", uintValue(1000)},
		{"{d:03}", "Int64", row.Value{Kind: row.Int, Num: math.MaxUint64}},
		{"{d:be4}", "UInt64", uintValue(1 << 32)},
		{"{d:be4}", "Int64", row.Value{Kind: row.Int, Num: 1 << 31}},
		{"{d:be8s}", "UInt64", uintValue(1 << 63)},
		{"{d:be4s}", "UInt64", uintValue(1 << 31)},
		{"{d}", "Float64", row.Value{Kind: row.Float, Num: plainNaN + 1}},
		{"{d}", "String", text("")},
		{"{d}", "String", text(strings.Repeat("x", MaxKey+1))},
		{"{d}", "UUID", text("not a UUID")},
		{"{d}", "UUID", text(strings.Repeat("X", 36))},
		{"{d}", "FixedString(2)", text("x")},
		{"{d:esc}", "FixedString(2)", text("x")},
		{"{d:be1}", "UInt64", uintValue(256)},
		{"{d:be2s}", "UInt64", uintValue(1 << 15)},
		{"{d:be1}", "Int64", row.Value{Kind: row.Int, Num: 128}},
		{"{d:be4}", "Date32", row.Value{Kind: row.Date, Num: math.MaxUint64}},
		{"{d:be8}", "DateTime64(3)", row.Value{Kind: row.DateTime, Num: math.MaxUint64}},
		{"{d:be4s}", "DateTime", row.Value{Kind: row.DateTime, Num: 1 << 31}},
		{"{d:05}", "Date32", row.Value{Kind: row.Date, Num: math.MaxUint64}},
		{"{d:yyyyMMdd}", "Date32", row.Value{Kind: row.Date, Num: lastDay + 1}},
		{"{d:float8}", "Float64", row.Value{Kind: row.Float, Num: plainNaN + 1}},
		{"{d:phoenix_double}", "Float64", row.Value{Kind: row.Float, Num: plainNaN | signBit}},
		{"{d:phoenix_unsigned_long}", "Int64", row.Value{Kind: row.Int, Num: math.MaxUint64}},
		{"{d:phoenix_bigint}", "UInt64", uintValue(1 << 63)},
		{"{d:phoenix_integer}", "Int64", row.Value{Kind: row.Int, Num: 1 << 31}},
		{"{d:phoenix_varchar}", "String", text("a\x00b")},
		{"{d:phoenix_decimal}", "Decimal(76, 2)", row.Value{Kind: row.Decimal, Big: new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(39), nil), big.NewInt(1))}},
		{"{d:phoenix_date}", "Date32", row.Value{Kind: row.Date, Num: 1 << 40}},
	} {
		_, err := mustCompile(t, tt.template, Dim{Name: "d", Type: typeOf(t, tt.typ)}).AppendKey(nil, unit(0), []row.Value{tt.value})
		if failure.ClassOf(err) != failure.Source {
			t.Errorf("%s of %s: %v", tt.template, tt.typ, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	c := mustCompile(t, "{salt}|{d:05}|{date}", Dim{Name: "d", Type: typeOf(t, "UInt64")})
	key, err := c.AppendKey(nil, unit(0), []row.Value{uintValue(7)})
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(key)
	other[0] ^= 1
	for _, bad := range [][]byte{nil, other, key[1:], key[:len(key)-1], append(bytes.Clone(key), 'x')} {
		if _, err := c.Decode(bad); !errors.Is(err, errNotAKey) {
			t.Errorf("Decode(%q): %v", bad, err)
		}
	}
}

// TestSplits: the regions begin where the salts do.
func TestSplits(t *testing.T) {
	d := Dim{Name: "d", Type: typeOf(t, "UInt64")}
	for _, tt := range []struct {
		name, template string
		salt           job.Salt
		regions        int
		count          int
		first, last    string
	}{
		{"all buckets", "x{salt}|{d}", job.Salt{Buckets: 64}, 0, 63, "x01", "x3f"},
		{"four regions", "x{salt}|{d}", job.Salt{Buckets: 64}, 4, 3, "x10", "x30"},
		{"at the end", "{d}|{salt}", job.Salt{Buckets: 64}, 0, 0, "", ""},
		{"a byte", "{salt}{d}", job.Salt{Buckets: 100, Binary: true, Hash: job.SaltCRC32}, 0, 99, "\x01", "\x63"},
		{"two bytes", "{salt}{d}", job.Salt{Buckets: 65536, Binary: true}, 2, 1, "\x80\x00", "\x80\x00"},
		{"a digit", "{salt}{d}", job.Salt{Prefix: 1, Hash: job.SaltFNV1a}, 0, 15, "1", "f"},
		{"all digits", "{salt}{d}", job.Salt{Prefix: 32}, 16, 15, "1000", "f000"},
		{"bytes", "{salt}{d}", job.Salt{Prefix: 4, Binary: true, Hash: job.SaltMurmur3}, 4, 3, "\x40\x00", "\xc0\x00"},
		{"Phoenix", "{salt}{d:be8s}", job.Salt{Buckets: 16, Binary: true, Hash: job.SaltPhoenix}, 0, 15, "\x01", "\x0f"},
	} {
		c := config(tt.template, d)
		c.Salt = &tt.salt
		if tt.salt.Hash != job.SaltPhoenix {
			c.Salt.Over = []int{0}
		}
		codec, err := Compile(c)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if w := codec.Warnings(); len(w) != 1 && tt.count > 0 {
			t.Errorf("%s: besides the missing date there is %q", tt.name, w)
		}
		s := codec.Splits(tt.regions)
		if len(s) != tt.count || tt.count > 0 && (string(s[0]) != tt.first || string(s[len(s)-1]) != tt.last) {
			t.Errorf("%s: %d keys, %q", tt.name, len(s), s)
		}
		if !slices.IsSortedFunc(s, bytes.Compare) {
			t.Errorf("%s: not in order: %q", tt.name, s)
		}
	}
}

// TestSaltRefused: what a salt cannot be.
func TestSaltRefused(t *testing.T) {
	d := Dim{Name: "d", Type: typeOf(t, "UInt64")}
	over := []int{0}
	for _, tt := range []struct {
		template string
		salt     job.Salt
		want     string
	}{
		{"{salt}{d}", job.Salt{Buckets: 16}, "over no dimension"},
		{"{salt}{d}", job.Salt{Over: over}, "neither buckets nor prefix"},
		{"{salt}{d}", job.Salt{Over: over, Buckets: 65537}, "buckets is 65537"},
		{"{salt}{d}", job.Salt{Over: over, Buckets: 16, Prefix: 2}, "exclude each other"},
		{"{salt}{d}", job.Salt{Over: over, Prefix: 33}, "1 to 32"},
		{"{salt}{d}", job.Salt{Over: over, Prefix: 17, Binary: true}, "1 to 16"},
		{"{salt}{d}", job.Salt{Over: over, Prefix: 9, Hash: job.SaltCRC32}, "1 to 8"},
		{"{salt}{d}", job.Salt{Over: over, Prefix: 5, Hash: job.SaltFNV1a, Binary: true}, "1 to 4"},
		{"{salt}{d}", job.Salt{Over: []int{0, 0}, Buckets: 2}, "listed twice"},
		{"{salt}{d}", job.Salt{Over: []int{1}, Buckets: 2}, "no dimension number 1"},
		{"{salt}{d}", job.Salt{Over: over, Buckets: 16, Hash: "sha1"}, "unknown"},
		{"{salt}{d}", job.Salt{Over: over, Buckets: 16, Hash: job.SaltPhoenix, Binary: true}, "all of the key"},
		{"{salt}{d}", job.Salt{Buckets: 16, Hash: job.SaltPhoenix}, "one byte"},
		{"{salt}{d}", job.Salt{Buckets: 257, Hash: job.SaltPhoenix, Binary: true}, "2 to 256"},
		{"x{salt}{d}", job.Salt{Buckets: 16, Hash: job.SaltPhoenix, Binary: true}, "first byte"},
		{"{salt}{salt}{d}", job.Salt{Over: over, Buckets: 16}, "second {salt}"},
	} {
		c := config(tt.template, d)
		c.Salt = &tt.salt
		if _, err := Compile(c); failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %+v: %v", tt.template, tt.salt, err)
		}
	}
}

// TestNoAllocation: a key needs no memory but its own, in any form and with
// any salt.
func TestNoAllocation(t *testing.T) {
	n, s, f, day, at := Dim{Name: "n", Type: typeOf(t, "Int64")}, Dim{Name: "s", Type: typeOf(t, "String")}, Dim{Name: "f", Type: typeOf(t, "Float64")},
		Dim{Name: "day", Type: typeOf(t, "Date")}, Dim{Name: "at", Type: typeOf(t, "DateTime64(3)")}
	row := []row.Value{{Kind: row.Int, Num: 123456}, text("app"), {Kind: row.Float, Num: math.Float64bits(1.5)}, {Kind: row.Date, Num: 20000}, {Kind: row.DateTime, Num: 1793010000123}}
	for _, template := range []string{
		"{salt}|{lvl}|{n}|{s:esc}|{f}|{day}|{at}|{tp}|{date}",
		"{salt}{n:be8s}{f:desc:float8}{day:be2}{at:desc:be8}{date:desc:yyyyMMdd}{s:rev}",
		`{salt}{md5:n,s}{n:phoenix_decimal}\x00{f:phoenix_double}{day:phoenix_date}{at:phoenix_timestamp}{date:be4}{s:phoenix_varchar}`,
	} {
		for _, salt := range []job.Salt{{Over: []int{0, 1}, Buckets: 64}, {Over: []int{0}, Buckets: 64, Hash: job.SaltMurmur3}, {Over: []int{1}, Prefix: 2, Hash: job.SaltCRC32},
			{Over: []int{0, 1}, Prefix: 2, Hash: job.SaltFNV1a, Binary: true}, {Buckets: 16, Hash: job.SaltPhoenix, Binary: true}} {
			c := config(template, n, s, f, day, at)
			c.Salt = &salt
			codec, err := Compile(c)
			if err != nil {
				t.Fatal(err)
			}
			key := make([]byte, 0, 256)
			if allocs := testing.AllocsPerRun(100, func() {
				if key, err = codec.AppendKey(key[:0], unit(0), row); err != nil {
					t.Fatal(err)
				}
			}); allocs != 0 {
				t.Errorf("%s, %s: %v allocations", template, salt.Describe(), allocs)
			}
		}
	}
}
