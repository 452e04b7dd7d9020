package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/report"
)

// verify compares what is published with ClickHouse at any time, finds what somebody
// else did to the table, and changes nothing.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, s, "metrics:\n", "metrics:\n  half: sum(pv) / 3\n")
			if o := j.command("verify", "JOB", "--date", date); o.code != 3 || !strings.Contains(o.stderr, "nothing is published for "+date) {
				t.Errorf("before the first run: %v", o)
			}
			var r report.Result
			if err := json.Unmarshal([]byte(j.run(0, "--json").stdout), &r); err != nil {
				t.Fatal(err)
			}
			before := j.cells()
			check := func(code int, says []string, args ...string) {
				t.Helper()
				o := j.command(append([]string{"verify", "JOB", "--date", date}, args...)...)
				if o.code != code {
					t.Errorf("%v: want exit code %d: %v", args, code, o)
				}
				for _, text := range says {
					if !strings.Contains(o.stdout+o.stderr, text) {
						t.Errorf("%v does not say %q: %v", args, text, o)
					}
				}
			}
			check(0, []string{"verified", "with ClickHouse as it is now"})
			check(0, []string{"verified", "every cell"}, "--level", "full")
			check(6, []string{"f:pv is ", "and ", " more"}, "--level", "full", "--config-override", "metrics.pv=sum(pv) + 1")
			check(2, []string{"level \"all\" is unknown"}, "--level", "all")

			hb := hbaseClient(t)
			key := slices.Sorted(maps.Keys(before))[0]
			put := func(key, qualifier, value string) {
				t.Helper()
				if err := hb.Put(t.Context(), j.name, []byte(key), "f", map[string][]byte{qualifier: []byte(value)}, r.Since); err != nil {
					t.Fatal(err)
				}
			}
			put(key, "pv", "\x00\x00\x00\x00\x00\x00\x00\x07")
			check(0, nil)
			check(6, []string{key, "f:pv is 7, ClickHouse has "}, "--level", "full")
			put(key, "pv", before[key]["pv"])
			check(0, nil, "--level", "full")
			if err := hb.DeleteVersion(t.Context(), j.name, "f", [][]byte{[]byte(key)}, r.Since); err != nil {
				t.Fatal(err)
			}
			check(6, []string{" groups in ClickHouse, "})
			check(6, []string{key, "missing in HBase"}, "--level", "full")
			if p := j.published(); len(p) == 0 {
				t.Error("the pointers are gone")
			}
		})
	}
}
