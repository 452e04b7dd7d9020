package job_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

var update = flag.Bool("update", false, "write the golden files")

// env is the environment of the tests.
func env(name string) (string, bool) {
	value, ok := map[string]string{
		"CK2HBASE_CLICKHOUSE":          "ck1:9000, ck2:9000",
		"CK2HBASE_CLICKHOUSE_PASSWORD": "hunter2hunter2",
		"CK2HBASE_CLICKHOUSE_USER":     "mover",
		"CK2HBASE_CLUSTER":             "c3",
		"CK2HBASE_ZOOKEEPER":           "zk1,zk2:2182",
		"BUCKETS":                      "32",
		"LIMIT":                        "2m",
	}[name]
	return value, ok
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// TestWrongFiles holds every kind of wrong input to its exact message.
func TestWrongFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			_, err := job.Load(path, job.Options{LookupEnv: env})
			if err == nil {
				t.Fatal("accepted")
			}
			if class := failure.ClassOf(err); class != failure.Usage {
				t.Errorf("class %d, want usage", class)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password shows:\n%v", err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".err", err.Error()+"\n")
		})
	}
}

// base is a job file that is right.
func base(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t *testing.T, text string, overrides ...string) *job.Job {
	t.Helper()
	j, err := job.Parse("job.yaml", []byte(text), job.Options{LookupEnv: env, Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestExamples(t *testing.T) {
	for _, name := range []string{"flights", "traffic", "ranking"} {
		j, err := job.Load("../../examples/"+name+".yaml", job.Options{LookupEnv: env})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"ck1:9000", "ck2:9000"}; !cmp.Equal(j.Source.Addresses, want) {
			t.Errorf("addresses %q, want %q", j.Source.Addresses, want)
		}
		if want := []string{"zk1:2181", "zk2:2182"}; !cmp.Equal(j.HBase.Clusters[0].ZooKeeper, want) {
			t.Errorf("zookeeper %q, want %q", j.HBase.Clusters[0].ZooKeeper, want)
		}
		if string(j.Source.Password) != "hunter2hunter2" {
			t.Error("the password did not arrive")
		}
		golden(t, "testdata/"+name+".golden", dump(j))
	}
}

func dump(j *job.Job) string {
	out := fmt.Sprintf("%+v", *j)
	out = regexp.MustCompile(`0x[0-9a-f]+`).ReplaceAllString(out, "0x…")
	return strings.ReplaceAll(out, "} ", "}\n") + "\n"
}

func TestDefaults(t *testing.T) {
	j := parse(t, base(t))
	got := []any{
		j.Source.Username, j.Periods, j.Timezone.String(), j.Levels, j.Limits, j.Scatter,
		j.HBase.Family, j.HBase.Columns, j.HBase.Create, j.HBase.Batch, j.HBase.Clusters[0], j.Verify,
	}
	want := []any{
		"default", []job.Period{job.Day}, "UTC", []job.Level{{Code: "11", Dimensions: []int{0, 1}}},
		job.Limits{MaxExecutionTime: 10 * time.Minute, MaxMemoryUsage: 10e9, MaxBytesBeforeExternalGroupBy: 5e9},
		job.Scatter{PerNode: 1}, "f", []string{"pv", "uv"}, job.Create{Compression: "NONE", Versions: 2},
		job.Batch{Rows: 1000, Bytes: 2 << 20, InFlight: 4, Compress: job.CompressNone},
		job.HBaseCluster{Name: "primary", ZooKeeper: []string{"zk1:2181"}, ZNode: "/hbase", NodeMap: map[string]string{}},
		job.Verify{Level: job.VerifyCount},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetricsKeepTheFilesOrder(t *testing.T) {
	text := strings.Replace(base(t), "  pv: sum(pv)", "  z: sum(z)\n  a: sum(a)\n  pv: sum(pv)\n  m: sum(m)", 1)
	var names []string
	for _, m := range parse(t, text).Metrics {
		names = append(names, m.Name)
	}
	if want := []string{"z", "a", "pv", "m", "uv"}; !cmp.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestVariables(t *testing.T) {
	j := parse(t, base(t),
		"sink.hbase.salt.buckets=${BUCKETS}", "limits.max_execution_time=${LIMIT}", "source.username=a$${b", "source.where=x = '${CK2HBASE_CLUSTER}'")
	if j.HBase.Salt.Buckets != 32 || j.Limits.MaxExecutionTime != 2*time.Minute || j.Source.Username != "a${b" || j.Source.Where != "x = 'c3'" {
		t.Errorf("%+v %+v %q %q", j.HBase.Salt, j.Limits, j.Source.Username, j.Source.Where)
	}
}

func TestOverrides(t *testing.T) {
	j := parse(t, base(t),
		"limits.max_memory_usage=4GiB", "scatter.slices=7", "metrics.pv={expr: sum(pv), encode: text}",
		"metrics.new=count()", `dimensions.0={name: shop_id, expr: id}`, "sink.hbase.row_key={salt}|{shop_id}|{src:esc}|{date}", "source.password=")
	if j.Limits.MaxMemoryUsage != 4<<30 || j.Scatter.Slices != 7 || j.Metrics[0].Encode != job.EncodeText || j.Metrics[2].Name != "new" ||
		j.Dimensions[0].Expr != "id" || !strings.HasSuffix(j.HBase.RowKey, "{date}") {
		t.Errorf("%+v", j)
	}
	for _, c := range []struct{ override, want string }{
		{"limits", "not an override"},
		{"limits.max_memory=1GB", `--config-override:1:1: unknown key "max_memory" in limits; did you mean "max_memory_usage"?`},
		{"name.x=1", "nothing can be put into name"},
		{"levels.3.x.y=1", "levels wants a list"},
		{"source.where=a = {ende}", `--config-override:1:18: source.where: unknown placeholder {ende}; did you mean "end"?`},
		{"source.password=[hunter2]", "source.password=***"},
	} {
		_, err := job.Parse("job.yaml", []byte(base(t)), job.Options{Overrides: []string{c.override}})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v\nwant %s", c.override, err, c.want)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"pw": "s3cret \n", "job.yaml": strings.Replace(base(t), "  cluster:", "  password_file: pw\n  cluster:", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j, err := job.Load(filepath.Join(dir, "job.yaml"), job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if string(j.Source.Password) != "s3cret " {
		t.Errorf("got %d characters", len(j.Source.Password))
	}
}

func TestLoadTellsWhatIsWrongWithTheFile(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/none.yaml": "testdata/none.yaml: no such file or directory",
		"testdata":           "testdata: is a directory",
	} {
		_, err := job.Load(path, job.Options{})
		if err == nil || err.Error() != want || failure.ClassOf(err) != failure.Usage {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestErrorAt(t *testing.T) {
	j := parse(t, base(t))
	cause := errors.New("unknown column pv")
	err := j.ErrorAt("metrics.pv", failure.New(failure.Preflight, cause, "fix it"))
	want := "job.yaml:11:7: unknown column pv\n   11 |   pv: sum(pv)\n      |       ^~~~~~~"
	if err.Error() != want || failure.ClassOf(err) != failure.Preflight || failure.Remedy(err) != "fix it" || !errors.Is(err, cause) {
		t.Errorf("%d %q %v\nwant\n%s", failure.ClassOf(err), failure.Remedy(err), err, want)
	}
	if class := failure.ClassOf(j.ErrorAt("source.table", cause)); class != failure.Usage {
		t.Errorf("an unclassified error has class %d", class)
	}
	if j.ErrorAt("name", nil) != nil {
		t.Error("nil became an error")
	}
	for path, want := range map[string]string{
		"dimensions[1].expr":   "job.yaml:9:23",
		"dimensions[1]":        "job.yaml:9:23",
		"limits.max_threads":   "job.yaml:1:1",
		"sink.hbase.create.x":  "job.yaml:14:3",
		"source.addresses[0]":  "job.yaml:3:15",
		"source.addresses[99]": "job.yaml:3:14",
	} {
		if pos, _ := j.Position(path); path != "limits.max_threads" && pos.String() != want {
			t.Errorf("%s is at %s, want %s", path, pos, want)
		}
	}
	if err := (&job.Job{Path: "p"}).ErrorAt("metrics.x", cause); err.Error() != "p: metrics.x: unknown column pv" {
		t.Error(err)
	}
}

// TestHash: what does not change the rows does not change the hash, all else does.
func TestHash(t *testing.T) {
	same := []string{"source.password=x", "source.addresses=[other]", "limits.max_execution_time=1s", "scatter.slices=3", "sink.hbase.batch.rows=5", "sink.hbase.create.ttl=1d"}
	other := []string{
		"source.where=x = 1", "source.table=t", "source.cluster=c4", "metrics.pv=max(pv)", "metrics.more=count()", "periods=[WEEK]", "timezone=Asia/Tokyo",
		"sink.hbase.table=t", "sink.hbase.family=g", "sink.hbase.row_key={salt}{shop_id}", "sink.hbase.salt.buckets=17", "sink.hbase.columns={pv: x}", "sink.hbase.pack=m",
		`levels=[{code: "a", dimensions: [shop_id, src]}]`, "dimensions.1.null=empty",
	}
	seen := map[string]string{parse(t, base(t)).Hash(): ""}
	for _, o := range same {
		if _, ok := seen[parse(t, base(t), o).Hash()]; !ok {
			t.Errorf("%s changes the hash", o)
		}
	}
	for _, o := range other {
		h := parse(t, base(t), o).Hash()
		if with, dup := seen[h]; dup {
			t.Errorf("%s has the hash of %q", o, with)
		}
		seen[h] = o
	}
	if got := parse(t, base(t)).Hash(); got != "4539c1a7c352ba4653492d873c85e833e7c49b842f951dd083a677e36d5e0f59" {
		t.Errorf("the hash of an unchanged job file changed: runs could not be resumed after an update; it is %s", got)
	}
}
