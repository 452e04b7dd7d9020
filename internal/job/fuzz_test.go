package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// FuzzParse: no input makes it panic, every refusal is a usage error with a
// place, and what is accepted can be used.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(files, "testdata/base.yaml", "../../examples/flights.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(strings.Repeat("[", 1000)))
	f.Add([]byte(strings.Repeat("- ", 1000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := job.Parse("f.yaml", text, job.Options{LookupEnv: env})
		if err != nil {
			if failure.ClassOf(err) != failure.Usage || !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("class %d: %v", failure.ClassOf(err), err)
			}
			return
		}
		for _, u := range j.Units(time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC)) {
			if _, err := job.Render(j.Source.Where, u); err != nil {
				t.Fatal(err)
			}
		}
		_ = j.Hash()
	})
}

// TestRender: placeholders become literals, all else stays as it is.
func TestRender(t *testing.T) {
	u := job.Unit{Period: job.Period("BY_LAST_DAYS_30").Span(day(t, "2026-11-29")), Date: day(t, "2026-11-29")}
	for in, want := range map[string]string{
		"":                                  "",
		"dt BETWEEN {start} AND {end}":      "dt BETWEEN toDate('2026-10-31') AND toDate('2026-11-29')",
		"d={date} AND tp = {tp}":            "d=toDate('2026-11-29') AND tp = 'BY_LAST_DAYS_30'",
		"match(u, 'a{3}') AND x[1] = {end}": "match(u, 'a{3}') AND x[1] = toDate('2026-11-29')",
		`a = 'it''s' AND b = 'x\'y{'`:       `a = 'it''s' AND b = 'x\'y{'`,
		"m = {{'a': 1}}":                    "m = {'a': 1}",
		"`c{` = \"d}\"":                     "`c{` = \"d}\"",
		"a IN (1, 2)":                       "a IN (1, 2)",
		"a = 'ü—–'":                         "a = 'ü—–'",
		"a - -1 = 2 / 3":                    "a - -1 = 2 / 3",
	} {
		if got, err := job.Render(in, u); err != nil || got != want {
			t.Errorf("%q: %q, %v\nwant %q", in, got, err, want)
		}
	}
	for _, in := range []string{"a)", "(a", "a]", "[a)", "'a", `'a\'`, "a -- b", "a--1", "a /* b", "a; b", "{x}", "{start", "}", "{start }", "'{start}'", "a, b", "a # b", "$$a$$", "a\x00", " "} {
		if got, err := job.Render(in, u); err == nil {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// TestRenderIsBalanced: whatever is accepted keeps to the parentheses put
// around it.
func TestRenderIsBalanced(t *testing.T) {
	u := job.Unit{Period: job.Day.Span(day(t, "2026-11-29")), Date: day(t, "2026-11-29")}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOf(rapid.SampledFrom([]rune(`a1 ()[]{}'"\-/*;,{}$#x`))).Draw(t, "where")
		out, err := job.Render(in, u)
		if err != nil || in == "" {
			return
		}
		depth, quote := 0, byte(0)
		for i := 0; i < len(out); i++ {
			switch c := out[i]; {
			case quote != 0 && c == '\\':
				i++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '\'' || c == '"' || c == '`':
				quote = c
			case c == '(' || c == '[':
				depth++
			case c == ')' || c == ']':
				if depth--; depth < 0 {
					t.Fatalf("%q leaves its parentheses", out)
				}
			case c == ';' || c == '#' || strings.HasPrefix(out[i:], "--") || strings.HasPrefix(out[i:], "/*"):
				t.Fatalf("%q holds a comment or an end", out)
			}
		}
		if depth != 0 || quote != 0 {
			t.Fatalf("%q is not balanced", out)
		}
	})
}
