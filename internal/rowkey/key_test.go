package rowkey

import (
	"bytes"
	"errors"
	"math"
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
		{config("{shop_id:desc}", shop), []string{"not supported yet"}},
		{config("{shop_id:le8}", shop), []string{"not supported yet"}},
		{config("{md5}{shop_id}", shop), []string{"not supported yet"}},
		{config("{shop_id:ecs}", shop), []string{"unknown form", "{shop_id:esc}"}},
		{config("{date:ddMMyyyy}{shop_id}", shop), []string{"not supported yet", "yyyyMMdd"}},
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
		"{s:esc}|{r}": "s r", "{s}|{r:esc}": "s r", "{u}:{s}:{dec}": "u s dec", "{t}|{s}": "t s", "{b}{u}": "b u", "{f}|{s}": "f s",
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

func TestSplits(t *testing.T) {
	c := mustCompile(t, "x{salt}|{d}", Dim{Name: "d", Type: typeOf(t, "UInt64")})
	if s := c.Splits(0); len(s) != 63 || string(s[0]) != "x01" || string(s[62]) != "x3f" {
		t.Errorf("all buckets: %q", s)
	}
	if s := c.Splits(4); len(s) != 3 || string(s[0]) != "x10" || string(s[2]) != "x30" {
		t.Errorf("four regions: %q", s)
	}
	if s := mustCompile(t, "{d}|{salt}", Dim{Name: "d", Type: typeOf(t, "UInt64")}).Splits(0); s != nil {
		t.Errorf("a salt at the end: %q", s)
	}
}
