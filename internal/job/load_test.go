package job_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
