package mover_test

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// TestP2UnpublishedRunsHideNothing: HBase keeps two versions of a cell. However
// many runs after the published one fail after they have written, its cells are
// still there, also once HBase has dropped what is beyond the versions and what
// is deleted; and the next good run is as good as ever, though the deletes of
// what the failed ones left are still there. The clock of the first run was an
// hour ahead of that of all later ones.
func TestP2UnpublishedRunsHideNothing(t *testing.T) {
	c := servers[0].loaded(t)
	const good, bad = "dt BETWEEN {start} AND {end}", "dt BETWEEN {start} AND {end} AND (shop_id % 5 != 0 OR initialQueryID() LIKE '%-verify-%')"
	source := []string{"source.table=" + database + ".traffic", "periods.0=DAY", "limits.max_memory_usage=2GB", "limits.max_bytes_before_external_group_by=1GB"}
	name := unique(t, "p2")
	job := func(where string) (j []string) {
		return append(source, "name="+name, "sink.hbase.table="+name, "source.where="+where)
	}
	j := load(t, c, "../../examples/traffic.yaml", job(good)...)
	dropAfter(t, j)
	hb := client(t, j)
	ahead := time.Now().Add(time.Hour).UnixMilli()
	if _, err := newMover(t, j, "2026-11-29").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock := map[string][]byte{"j": fmt.Appendf(nil, `{"t":%d,"run":"of a fast clock"}`, ahead)}
	if err := hb.Put(t.Context(), ledger.Table, []byte("clock/"+name), "l", clock, 0); err != nil {
		t.Fatal(err)
	}
	first, err := newMover(t, j, "2026-11-29").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compact := func() {
		t.Helper()
		if err := lab.Shared(t).HBase(t).Admin(t.Context(), "flush", name, "major_compact", name); err != nil {
			t.Fatal(err)
		}
	}
	truth := dayTruth(t, c)
	check := func(when string, r *report.Result) {
		t.Helper()
		missing := 0
		for key, want := range truth {
			row, err := hb.Get(t.Context(), name, []byte(key), r.Since, r.Until)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, cell := range row.Cells {
				got[cell.Qualifier] = string(cell.Value)
			}
			if !maps.Equal(want, got) {
				if missing++; missing < 4 {
					t.Errorf("%s: row %q of the published run is %q, want %q", when, key, got, want)
				}
			}
		}
	}
	for range 3 {
		failing := load(t, c, "../../examples/traffic.yaml", job(bad)...)
		if _, err := newMover(t, failing, "2026-11-29").Run(t.Context()); failure.ClassOf(err) != failure.Mismatch {
			t.Fatalf("class %d, %v", failure.ClassOf(err), err)
		}
		compact()
	}
	check("after three failed runs", first)
	last, err := newMover(t, j, "2026-11-29").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Since != ahead+1 || last.Since <= first.Since {
		t.Errorf("runs at %d and %d, want %d and later", first.Since, last.Since, ahead+1)
	}
	check("the next good run, beside the deletes", last)
	compact()
	check("the next good run", last)
	check("the run before it", first)
}

// dayTruth is the traffic job over one day by one unsliced query.
func dayTruth(t *testing.T, c *lab.Cluster) map[string]map[string]string {
	t.Helper()
	truth := map[string]map[string]string{}
	for _, r := range ask(t, c, `SELECT shop_id, first_source, sum(pv), uniqExact(user_id), toInt64(sum(amount) * 100) FROM `+database+`.traffic
		WHERE dt = '2026-11-29' GROUP BY shop_id, first_source`) {
		truth[salted(r[0], 64, "11|"+r[0]+"|"+r[1]+"|DAY|2026-11-29")] = map[string]string{
			"p": long(t, r[2]), "u": long(t, r[3]), "a": hundredths(t, r[4]),
		}
	}
	return truth
}

// TestP2HalfPublishedRunHidesNothing: a run that ended between two pointers is
// published for one level and not for the other. What it has left in the other is
// removed, so that the run after it, which fails, pushes nothing out that readers see.
func TestP2HalfPublishedRunHidesNothing(t *testing.T) {
	c := servers[0].loaded(t)
	name := unique(t, "half")
	load := func(where string) *job.Job {
		return load(t, c, "../../examples/traffic.yaml", "source.table="+database+".traffic", "name="+name, "sink.hbase.table="+name,
			"levels=[{code: '11', dimensions: [shop_id, first_source]}, {code: '01', dimensions: [first_source]}]", "sink.hbase.salt={over: [first_source], buckets: 8}",
			"periods.0=DAY", "limits.max_memory_usage=2GB", "limits.max_bytes_before_external_group_by=1GB",
			"source.where=dt BETWEEN {start} AND {end}"+where)
	}
	j := load("")
	dropAfter(t, j)
	hb := client(t, j)
	ledgerRow := func(key string) []byte {
		t.Helper()
		r, err := hb.Get(t.Context(), ledger.Table, []byte(key), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		value, _ := r.Value("l", "j")
		return value
	}
	put := func(key string, value []byte) {
		t.Helper()
		if err := hb.Put(t.Context(), ledger.Table, []byte(key), "l", map[string][]byte{"j": value}, 0); err != nil {
			t.Fatal(err)
		}
	}
	shown := map[string]*report.Result{}
	var err error
	if shown["01"], err = newMover(t, j, "2026-11-29").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := ledgerRow("pub/" + name + "/2026-11-29/01/DAY")
	if shown["11"], err = newMover(t, j, "2026-11-29").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As if the process had been killed before it moved the second pointer.
	put("pub/"+name+"/2026-11-29/01/DAY", old)
	key := "run/" + name + "/2026-11-29/" + shown["11"].Run
	put(key, bytes.Replace(ledgerRow(key), []byte(`"state":"published"`), []byte(`"state":"running"`), 1))
	failing := load(" AND (shop_id % 5 != 0 OR initialQueryID() LIKE '%-verify-%')")
	if _, err := newMover(t, failing, "2026-11-29").Run(t.Context()); failure.ClassOf(err) != failure.Mismatch {
		t.Fatalf("class %d, %v", failure.ClassOf(err), err)
	}
	if err := lab.Shared(t).HBase(t).Admin(t.Context(), "flush", name, "major_compact", name); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"01": "10", "11": ask(t, c, "SELECT uniqExact(shop_id, first_source) FROM "+database+".traffic WHERE dt = '2026-11-29'")[0][0]}
	for level, r := range shown {
		for other := range want {
			n := 0
			for key := range rowsAt(t, j, 0, r.Since, r.Until) {
				if strings.Contains(key, "|"+other+"|") {
					n++
				}
			}
			switch {
			case other == level && strconv.Itoa(n) != want[level]:
				t.Errorf("level %s: %d rows are there of the %s published", level, n, want[level])
			case other != level && level == "11" && n > 0:
				t.Errorf("%d rows are there of level %s that were never published", n, other)
			}
		}
	}
}
