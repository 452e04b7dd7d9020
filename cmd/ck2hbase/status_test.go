package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/mover"
)

// status shows what is published in each cluster; one that cannot be reached is
// no error beside one that can. A dry run publishes nothing, a run does.
func TestStatus(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "[\"QUORUM\"]\n", "[\"QUORUM\"]\n      - {name: other, zookeeper: [\"127.0.0.1:1\"]}\n    require: any\n")
	show := func(says ...string) {
		t.Helper()
		o := j.command("status", "JOB", "--date", date)
		if o.code != 0 {
			t.Fatalf("status: %v", o)
		}
		for _, text := range says {
			if !strings.Contains(o.stdout, text) {
				t.Errorf("status does not say %q: %v", text, o)
			}
		}
	}
	show("nothing published", "other", "unreachable", "no ZooKeeper at 127.0.0.1:1")
	if o := j.run(0, "--dry-run"); !strings.Contains(o.stdout, "nothing was written") {
		t.Errorf("a dry run: %v", o)
	}
	show("nothing published")
	if o := j.run(0); !strings.Contains(o.stdout, "primary published") || !strings.Contains(o.stdout, "other failed") {
		t.Errorf("a run: %v", o)
	}
	show("primary", "published", "unreachable")
	o := j.command("status", "JOB", "--date", date, "--json")
	var all []mover.ClusterStatus
	if err := json.Unmarshal([]byte(o.stdout), &all); err != nil || len(all) != 2 || all[0].State != "published" || len(all[0].Units) != 1 || all[1].Error == "" {
		t.Errorf("%v: %v", err, o)
	}
}

// A job whose sink is a file has no status and no rows to get.
func TestFileJobHasNoTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.yaml")
	text := "name: f\nsource: {addresses: [\"ck1:9000\"], cluster: c3, table: t}\ndimensions: [a]\nmetrics: {n: count()}\nsink: {file: {path: x.csv}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status", path, "--date", date}, {"get", path, "a=1"}, {"scan", path}} {
		var out, log strings.Builder
		if code := run(t.Context(), args, func(string) (string, bool) { return "", false }, &out, &log); code != 2 || !strings.Contains(log.String(), "the job writes files") {
			t.Errorf("%q: %d %s%s", args, code, out.String(), log.String())
		}
	}
}
