package mover_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/sink/file"
)

// fileJob is a job with a type of each kind, two levels and two periods.
func fileJob(t *testing.T, c *lab.Cluster, sink string, overrides ...string) *job.Job {
	t.Helper()
	text := `
name: ` + unique(t, "f") + `
source:
  addresses: ["${CK2HBASE_CLICKHOUSE}"]
  cluster: ${CK2HBASE_CLUSTER}
  username: ${CK2HBASE_CLICKHOUSE_USER}
  password: ${CK2HBASE_CLICKHOUSE_PASSWORD}
  table: ` + database + `.traffic
  where: dt BETWEEN {start} AND {end}
dimensions: [shop_id, {name: src, expr: "nullIf(first_source, 'app')"}]
metrics:
  pv: sum(pv)
  some: arraySort(groupUniqArray(3)(user_id % 3))
  pair: tuple(min(pv), 'a"b')
  odd: nullIf(sum(pv) % 2, 0)
  money: toDecimal128(sum(pv), 3) / 8
  part: sum(pv) / 7
  last: max(dt)
  at: toDateTime(max(dt), 'UTC')
periods: [DAY, BY_LAST_DAYS_3]
levels: [{code: "11", dimensions: [shop_id, src]}, {code: "01", dimensions: [src]}]
limits: {max_memory_usage: 2GB, max_bytes_before_external_group_by: 1GB}
sink: {file: ` + sink + `}
`
	j, err := job.Parse("file.yaml", []byte(text), job.Options{LookupEnv: env(t, c), Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// fileColumns are the columns of the files with types that hold them, and
// fileTruth gives the same by unsliced queries.
const fileColumns = "date Date, level String, period String, shop_id Nullable(UInt64), src Nullable(String), pv UInt64, some String, pair String," +
	" odd Nullable(UInt64), money Decimal(38, 3), part Float64, last Date, at DateTime('UTC')"

func fileTruth() string {
	var all []string
	for _, period := range [][2]string{{"DAY", "dt = '2026-11-29'"}, {"BY_LAST_DAYS_3", "dt BETWEEN '2026-11-27' AND '2026-11-29'"}} {
		for _, level := range [][2]string{{"11", "shop_id"}, {"01", "NULL"}} {
			group := "x"
			if level[1] != "NULL" {
				group = "shop_id, x"
			}
			all = append(all, fmt.Sprintf(`SELECT toDate('2026-11-29'), '%s', '%s', CAST(%s AS Nullable(UInt64)), nullIf(first_source, 'app') AS x, sum(pv),
				toJSONString(arraySort(groupUniqArray(3)(user_id %% 3))), toJSONString(tuple(min(pv), 'a"b')), nullIf(sum(pv) %% 2, 0),
				toDecimal128(sum(pv), 3) / 8, sum(pv) / 7, max(dt), toDateTime(max(dt), 'UTC') FROM %s.traffic WHERE %s GROUP BY %s`,
				level[0], period[0], level[1], database, period[1], group))
		}
	}
	return strings.Join(all, " UNION ALL ")
}

// imported has ClickHouse read files, and wants it to find in them what one
// query for each level and period gives.
func imported(t *testing.T, c *lab.Cluster, format string, paths ...string) {
	t.Helper()
	table := database + "." + unique(t, "imported")
	n := c.Nodes[0]
	if err := n.Exec(t.Context(), "CREATE TABLE "+table+" ("+fileColumns+") ENGINE = MergeTree ORDER BY tuple()"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Exec(t.Context(), "DROP TABLE "+table); err != nil {
			t.Error(err)
		}
	}()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Insert(t.Context(), "INSERT INTO "+table+" SETTINGS date_time_input_format='best_effort' FORMAT "+format, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{
		"SELECT count() FROM (SELECT * FROM " + table + " EXCEPT (" + fileTruth() + "))",
		"SELECT count() FROM ((" + fileTruth() + ") EXCEPT SELECT * FROM " + table + ")",
		"SELECT (SELECT count() FROM " + table + ") - (SELECT count() FROM (" + fileTruth() + "))",
	} {
		if got := ask(t, c, sql); got[0][0] != "0" {
			t.Errorf("%s: %s rows are other than one query gives (%s)", format, got[0][0], sql[:40])
		}
	}
}

func TestFiles(t *testing.T) {
	c := servers[0].loaded(t)
	for format, name := range map[string]string{"JSONEachRow": "x.ndjson", "CSVWithNames": "x.csv", "Parquet": "x.parquet"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "deep", "{date}", name)
			j := fileJob(t, c, "{path: '"+path+"'}", "scatter.slices=3")
			path = strings.ReplaceAll(path, "{date}", "2026-11-29")
			for range 2 { // the second run replaces what the first has left
				result, err := newMover(t, j, "2026-11-29").Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(result.Units) != 4 || !result.Units[3].Verified {
					t.Errorf("the report: %+v", result.Units)
				}
				imported(t, c, format, path)
				onlyThere(t, filepath.Dir(path), name)
			}
		})
	}
}

// onlyThere wants a directory to hold the given files, besides the lock.
func onlyThere(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			got = append(got, e.Name())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		t.Errorf("%s holds %v, want %v", dir, got, names)
	}
}

// A file for each level and period; a run that fails leaves what is there, and
// what a killed run has left is removed.
func TestFilesOfUnits(t *testing.T) {
	c := servers[0].loaded(t)
	dir := t.TempDir()
	j := fileJob(t, c, "{path: '"+dir+"/{lvl}-{tp}.csv'}")
	dead := filepath.Join(dir, ".ck2hbase-"+j.Name+"-20261129t000000-abcdef.tmp")
	if err := os.MkdirAll(filepath.Join(dead, "0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := newMover(t, j, "2026-11-29").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := []string{"01-BY_LAST_DAYS_3.csv", "01-DAY.csv", "11-BY_LAST_DAYS_3.csv", "11-DAY.csv"}
	check := func() {
		t.Helper()
		onlyThere(t, dir, names...)
		var paths []string
		for _, n := range names {
			paths = append(paths, filepath.Join(dir, n))
		}
		imported(t, c, "CSVWithNames", paths...)
	}
	check()
	m := newMover(t, j, "2026-11-29")
	broken := *j
	// The count sees other rows than the slices.
	broken.Source.Where = "dt BETWEEN {start} AND {end} AND (shop_id % 5 != 0 OR initialQueryID() LIKE '%-verify-%')"
	m.Job = &broken
	if _, err := m.Run(t.Context()); failure.ClassOf(err) != failure.Mismatch {
		t.Fatalf("a run whose counts differ ends with %v", err)
	}
	check()
	lock, err := file.Lock(filepath.Join(dir, ".ck2hbase-"+j.Name+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := newMover(t, j, "2026-11-29").Run(t.Context()); failure.ClassOf(err) != failure.Locked {
		t.Fatalf("a run beside another ends with %v", err)
	}
	check()
}
