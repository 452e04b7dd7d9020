package mover_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

// A meddler does to a table what no run does.
type meddler struct {
	t        *testing.T
	hb       gohbase.Client
	table    string
	stamp    int64
	a, b     string // the keys of two rows
	stranger string // a key that no row has
	values   map[string]map[string]string
}

func (m meddler) put(key, family, qualifier, value string, stamp int64) {
	m.t.Helper()
	cells := map[string]map[string][]byte{family: {qualifier: []byte(value)}}
	put, err := hrpc.NewPut(m.t.Context(), []byte(m.table), []byte(key), cells, hrpc.TimestampUint64(uint64(stamp)))
	if err == nil {
		_, err = m.hb.Put(put)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// remove deletes cells at the run's timestamp, all of a row if none is named.
func (m meddler) remove(key string, qualifiers ...string) {
	m.t.Helper()
	if len(qualifiers) == 0 {
		for q := range m.values[key] {
			qualifiers = append(qualifiers, q)
		}
	}
	cells := map[string][]byte{}
	for _, q := range qualifiers {
		cells[q] = nil
	}
	del, err := hrpc.NewDel(m.t.Context(), []byte(m.table), []byte(key), map[string]map[string][]byte{"f": cells}, hrpc.TimestampUint64(uint64(m.stamp)), hrpc.DeleteOneVersion())
	if err == nil {
		_, err = m.hb.Delete(del)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m meddler) bit(key, qualifier string) {
	v := []byte(m.values[key][qualifier])
	v[len(v)-1] ^= 1
	m.put(key, "f", qualifier, string(v), m.stamp)
}

// A corruption is something that may be wrong with the cells of a run.
type corruption struct {
	meddle func(m meddler)
	counts bool              // verify.level: count finds it
	wrong  map[string]string // what the report of verify.level: full says of keys
}

// corruptions are those of docs/verification.md.
var corruptions = map[string]corruption{
	"a row is missing": {func(m meddler) { m.remove(m.a) }, true, map[string]string{"a": "missing in HBase"}},
	"a row too many": {func(m meddler) { m.put(m.stranger, "f", "flights", "1", m.stamp) }, true,
		map[string]string{"stranger": "in HBase, but not in ClickHouse"}},
	"a row missing and one too many": {func(m meddler) {
		m.remove(m.a)
		m.put(m.stranger, "f", "flights", "1", m.stamp)
	}, false, map[string]string{"a": "missing in HBase", "stranger": "in HBase, but not in ClickHouse"}},
	"a bit of a cell":   {func(m meddler) { m.bit(m.a, "flights") }, false, map[string]string{"a": "f:flights is "}},
	"a cell is missing": {func(m meddler) { m.remove(m.a, "distance") }, false, map[string]string{"a": "f:distance is missing, ClickHouse has "}},
	"a cell too many":   {func(m meddler) { m.put(m.a, "f", "other", "1", m.stamp) }, false, map[string]string{"a": `f:other is "1", ClickHouse has none`}},
	"two cells swapped between rows": {func(m meddler) {
		m.put(m.a, "f", "arr_delay_avg", m.values[m.b]["arr_delay_avg"], m.stamp)
		m.put(m.b, "f", "arr_delay_avg", m.values[m.a]["arr_delay_avg"], m.stamp)
	}, false, map[string]string{"a": "f:arr_delay_avg is ", "b": "f:arr_delay_avg is "}},
	"a row at another timestamp": {func(m meddler) {
		m.remove(m.a)
		for q, v := range m.values[m.a] {
			m.put(m.a, "f", q, v, m.stamp+1)
		}
	}, true, map[string]string{"a": "missing in HBase"}},
	"a cell in another family": {func(m meddler) {
		m.remove(m.a, "flights")
		m.put(m.a, "g", "flights", m.values[m.a]["flights"], m.stamp)
	}, false, map[string]string{"a": "f:flights is missing"}},
}

// TestCorruptions: whatever is wrong with the cells in HBase is found before it is
// published, by the levels that docs/verification.md names, and the report of level
// full names the rows.
func TestCorruptions(t *testing.T) {
	c := servers[0].loaded(t)
	rows := flightsTruth(t, c)
	all := meddler{values: rows, stranger: saltOf16("N0", "N0|UA|YEAR|2013-12-31")}
	var cells uint64
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		cells += uint64(len(rows[key]))
		switch {
		case len(rows[key]) < 6:
		case all.a == "":
			all.a = key
		case rows[key]["arr_delay_avg"] != rows[all.a]["arr_delay_avg"]:
			all.b = key // in the other region, most likely
		}
	}
	for _, level := range []job.VerifyLevel{job.VerifyCount, job.VerifyFull} {
		t.Run(string(level), func(t *testing.T) {
			j := load(t, c, "../../examples/flights.yaml", "source.table="+database+".flights", "verify.level="+string(level))
			m := all
			m.hb, m.table = twoFamilies(t, j), j.HBase.Table
			result, err := newMover(t, j, "2013-12-31").Run(t.Context())
			if err != nil || !result.Units[0].Verified || (result.Units[0].Cells != nil) != (level == job.VerifyFull) {
				t.Fatalf("%+v, %v", result, err)
			}
			if found := result.Units[0].Cells; found != nil && (found.Written != cells || found.HBase != cells || found.WrittenSum != found.HBaseSum) {
				t.Errorf("%+v, want %d cells", found, cells)
			}
			for name, tc := range corruptions {
				t.Run(name, func(t *testing.T) { m.corrupt(t, j, tc) })
			}
			n := newMover(t, j, "2013-12-31")
			status, err := mover.Status(t.Context(), j, n.Date, n.Log)
			if err != nil || len(status[0].Units) != 1 || status[0].Units[0].Verified != string(level) {
				t.Fatalf("%+v, %v", status, err)
			}
			if level == job.VerifyFull && status[0].Units[0].Run != result.Run {
				t.Errorf("something wrong was published: %+v", status)
			}
		})
	}
}

// twoFamilies makes the job's table with a family more.
func twoFamilies(t *testing.T, j *job.Job) gohbase.Client {
	t.Helper()
	dropAfter(t, j)
	quorum := strings.Join(j.HBase.Clusters[0].ZooKeeper, ",")
	families := map[string]map[string]string{"f": {"VERSIONS": "2"}, "g": {"VERSIONS": "2"}}
	if err := gohbase.NewAdminClient(quorum).CreateTable(hrpc.NewCreateTable(t.Context(), []byte(j.HBase.Table), families, hrpc.SplitKeys([][]byte{[]byte("8")}))); err != nil {
		t.Fatal(err)
	}
	hb := gohbase.NewClient(quorum)
	t.Cleanup(hb.Close)
	return hb
}

// corrupt runs the job and meddles with its cells before they are counted.
func (m meddler) corrupt(t *testing.T, j *job.Job, tc corruption) {
	m.t = t
	result, err := mover.RunMeddled(t.Context(), newMover(t, j, "2013-12-31"), func(stamp int64) error {
		m.stamp = stamp
		tc.meddle(m)
		return nil
	})
	full := j.Verify.Level == job.VerifyFull
	if found := failure.ClassOf(err) == failure.Mismatch; found != (tc.counts || full) || found == result.Units[0].Verified {
		t.Fatalf("found: %v, %+v, %v", found, result.Units[0], err)
	}
	if !full {
		return
	}
	for key, want := range tc.wrong {
		key = map[string]string{"a": m.a, "b": m.b, "stranger": m.stranger}[key]
		line := regexp.MustCompile(regexp.QuoteMeta(fmt.Sprintf("key %q (", key)) + "[^\n]*").FindString(err.Error())
		if !strings.Contains(line, want) || !strings.Contains(line, "region ") {
			t.Errorf("want %q of key %q in: %v", want, key, err)
		}
	}
	if n := strings.Count(err.Error(), "\nkey "); n != len(tc.wrong) {
		t.Errorf("%d keys are named, want %d: %v", n, len(tc.wrong), err)
	}
}

// TestCorruptionsAreDocumented: the document's table is what the test shows.
func TestCorruptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range corruptions {
		counts := map[bool]string{true: "yes", false: "no"}[tc.counts]
		if row := fmt.Sprintf("| %s | %s | yes |", name, counts); !strings.Contains(string(text), row) {
			t.Errorf("docs/verification.md has no row %s", row)
		}
	}
}
