package rowkey

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// rankConfig has the dimensions shop and source and metrics of many types.
func rankConfig(t testing.TB, template string) Config {
	c := config(template, Dim{Name: "shop", Type: typeOf(t, "UInt32")}, Dim{Name: "source", Type: typeOf(t, "String")})
	for _, m := range []struct{ name, typ string }{{"pv", "UInt64"}, {"delta", "Int64"}, {"rate", "Float64"}, {"amount", "Decimal(18, 2)"}, {"last", "Date"}, {"maybe", "Nullable(UInt64)"}, {"name", "String"}} {
		c.Metrics = append(c.Metrics, row.Column{Name: m.name, Type: typeOf(t, m.typ)})
	}
	return c
}

func rankRow(t testing.TB, shop uint64, source string, pv uint64) []row.Value {
	values := []row.Value{uintValue(shop), text(source), uintValue(pv)}
	for _, typ := range []string{"Int64", "Float64", "Decimal(18, 2)", "Date", "UInt64", "String"} {
		values = append(values, sampleValue(t, typeOf(t, typ)))
	}
	return values
}

// TestRanking: the keys' order is that of the metric, the largest first, with
// the dimensions where it ties.
func TestRanking(t *testing.T) {
	c, err := Compile(rankConfig(t, "{lvl}|{tp}|{pv:desc:be8}{shop:be4}{source}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Ranks(); !slices.Equal(got, []string{"pv"}) {
		t.Errorf("ranks %v", got)
	}
	rows := [][]row.Value{rankRow(t, 7, "x", 1<<40), rankRow(t, 1, "b", 300), rankRow(t, 2, "a", 300), rankRow(t, 2, "b", 300), rankRow(t, 9, "z", 0)}
	var keys []string
	for _, values := range rows {
		key, err := c.AppendKey(nil, unit(0), values)
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Decode(key)
		if err != nil || !sameValue(k.Dims[0], values[0]) || !sameValue(k.Dims[1], values[1]) || len(k.Metrics) != 7 || !sameValue(k.Metrics[0], values[2]) {
			t.Errorf("%q decodes to %+v, %v", key, k, err)
		}
		keys = append(keys, string(key))
	}
	if !slices.IsSorted(keys) {
		t.Errorf("not sorted: %q", keys)
	}
	// ~300, and 2 in four bytes
	if want := hex.EncodeToString([]byte(c.config.Levels[0].Code+"|DAY|")) + "fffffffffffffed3" + "00000002" + "61"; hex.EncodeToString([]byte(keys[2])) != want {
		t.Errorf("%x, want %s", keys[2], want)
	}
	if _, err := c.AppendKey(nil, unit(0), rows[0][:2]); err == nil {
		t.Error("a key without its metric")
	}
	if key, err := c.AppendLeading([]byte("x"), unit(0), rows[0][:2], 0); err != nil || string(key) != "x11|DAY|" {
		t.Errorf("in front of the metric: %q, %v", key, err)
	}
	if _, err := c.Decode([]byte(keys[0][1:])); err == nil {
		t.Error("half a key is decoded")
	}
}

// TestRankingForms: what sorts as a metric may stand in a key, what does not may not.
func TestRankingForms(t *testing.T) {
	const dims = "|{shop}|{source}"
	for _, template := range []string{"{pv:desc:be8}", "{pv:020}", "{pv:desc:phoenix_bigint}", "{delta:be8s}", "{delta:desc:be8s}", "{rate:desc:float8}", "{amount:desc:phoenix_decimal}\\xff",
		"{last:desc:be4}", "{last:yyyy-MM-dd}", "{name:phoenix_varchar}\\x00", "{pv:desc:be8}{rate:float8}"} {
		if _, err := Compile(rankConfig(t, template+dims)); err != nil {
			t.Errorf("%s: %v", template, err)
		}
	}
	for template, want := range map[string]string{
		"{pv}" + dims:                                "{pv} does not sort as the metric does",
		"{rate:esc}" + dims:                          "{rate:esc} does not sort",
		"{pv:rev:be8}" + dims:                        "does not sort",
		"{delta:desc:be8}" + dims:                    "sorts negative numbers behind the others, and delta is Int64",
		"{last:ddMMyyyy}" + dims:                     "does not sort as dates do",
		"{maybe:desc:be8}" + dims:                    "the metric maybe can be NULL",
		"{pv:desc:be8}|{shop}":                       "rows that differ in source would share a key: {source} is missing",
		"{pv:desc:be8}":                              "rows that differ in shop would share a key: {shop} is missing",
		"{amount:phoenix_decimal}{source}|{shop}":    "it cannot be told where",
		"{source}{amount:phoenix_decimal}{shop:be4}": "it cannot be told where",
		"{pw:desc:be8}" + dims:                       "unknown field {pw}",
		"{md5:pv}{shop}|{source}":                    "needs the names of dimensions",
		"{name:be8}" + dims:                          "needs an integer",
	} {
		_, err := Compile(rankConfig(t, template))
		if failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), want) || failure.Remedy(err) == "" {
			t.Errorf("%s: %v → %s, want %q", template, err, failure.Remedy(err), want)
		}
	}
	c, err := Compile(rankConfig(t, "{pv:desc:be1}{rate:float8}|{shop}|{source}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AppendKey(nil, unit(0), rankRow(t, 1, "a", 256)); failure.ClassOf(err) != failure.Source || !strings.Contains(err.Error(), "the value 256 of metric pv does not fit {pv:desc:be1}") {
		t.Error(err)
	}
	if w := strings.Join(c.Warnings(), "\n"); !strings.Contains(w, "{rate:float8}: sums of floats") {
		t.Errorf("warnings %q", w)
	}
}

// TestRanges: the prefixes of keys with some dimensions given.
func TestRanges(t *testing.T) {
	shop, source := uintValue(42), text("app")
	md5 := &job.Salt{Over: []int{0}, Buckets: 64}
	for _, tt := range []struct {
		template string
		salt     *job.Salt
		given    []*row.Value
		want     string // the first prefix
		n, skip  int
	}{
		{"{lvl}|{tp}|{date}|{pv:desc:be8}{shop}|{source}", nil, []*row.Value{nil, nil}, "11|DAY|2026-11-29|", 1, 0},
		{"{shop}|{source}|{tp}", nil, []*row.Value{nil, nil}, "", 1, 0},
		{"{shop}|{source}|{tp}", nil, []*row.Value{&shop, nil}, "42|", 1, 0},
		{"{shop}|{source}|{tp}", nil, []*row.Value{&shop, &source}, "42|app|DAY", 1, 0},
		{"{salt}|{tp}|{shop}|{source}", md5, []*row.Value{nil, nil}, "00|DAY|", 64, 2},
		{"k{salt}|{tp}|{shop}|{source}", md5, []*row.Value{nil, nil}, "k00|DAY|", 64, 3},
		// md5("42") = a1d0c6e83f027327…, and 0x…27 % 64 = 0x27
		{"{salt}|{tp}|{shop}|{source}", md5, []*row.Value{&shop, nil}, "27|DAY|42|", 1, 0},
		{"{salt}{shop}|{source}", &job.Salt{Over: []int{0}, Prefix: 6}, []*row.Value{&shop, nil}, "a1d0c642|", 1, 0},
		{"{salt}{shop}|{source}", &job.Salt{Over: []int{0}, Prefix: 2, Binary: true}, []*row.Value{&shop, nil}, "\xa1\xd042|", 1, 0},
		{"{salt}{shop}|{source}", &job.Salt{Over: []int{0}, Prefix: 2}, []*row.Value{nil, nil}, "00", 256, 2},
		{"{salt}{shop:be4}{source}", &job.Salt{Hash: job.SaltPhoenix, Buckets: 4, Binary: true}, []*row.Value{&shop, nil}, "\x00\x00\x00\x00\x2a", 4, 1},
		{"{md5:shop}{shop}|{source}", nil, []*row.Value{&shop, nil}, "a1d0c6e83f027327d8461063f4ac58a642|", 1, 0},
		{"{md5:shop}{shop}|{source}", nil, []*row.Value{nil, nil}, "", 1, 0},
	} {
		c := rankConfig(t, tt.template)
		c.Salt = tt.salt
		codec, err := Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := codec.Ranges(unit(0), tt.given)
		if err != nil || len(r.Prefixes) != tt.n || r.Skip != tt.skip || string(r.Prefixes[0]) != tt.want || r.Unmerged {
			t.Errorf("%s: %d prefixes from %q, skip %d, %v", tt.template, len(r.Prefixes), r.Prefixes[0], r.Skip, err)
		}
	}
	c := rankConfig(t, "{salt}{shop}|{source}")
	c.Salt = &job.Salt{Over: []int{0}, Prefix: 8}
	codec, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := codec.Ranges(unit(0), []*row.Value{nil, nil}); err != nil || len(r.Prefixes) != 1 || len(r.Prefixes[0]) != 0 || !r.Unmerged {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRangesRefuse: a dimension whose rows are not side by side.
func TestRangesRefuse(t *testing.T) {
	shop, source := uintValue(42), text("app")
	for _, tt := range []struct {
		template string
		given    []*row.Value
		want     string
	}{
		{"{shop}|{source}", []*row.Value{nil, &source}, "source stands behind shop"},
		{"{lvl}|{pv:desc:be8}{shop}|{source}", []*row.Value{&shop, nil}, "shop stands behind the metric pv"},
		{"{md5:shop}|{source}|{shop}", []*row.Value{nil, &source}, "source stands behind {md5:shop}"},
	} {
		c, err := Compile(rankConfig(t, tt.template))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Ranges(unit(0), tt.given)
		if failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), tt.want) || !strings.Contains(failure.Remedy(err), "leave") {
			t.Errorf("%s: %v → %s", tt.template, err, failure.Remedy(err))
		}
	}
}
