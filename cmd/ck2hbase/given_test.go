package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A plan that somebody has looked at can be run as it is, as long as it is what
// the job asks and the source is what it was.
func TestRunOfAGivenPlan(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.loaded(t)
			table := fmt.Sprintf("%s.given_%d", database, names.Add(1))
			exec := func(sql string) {
				if err := s.ExecAll(context.WithoutCancel(t.Context()), sql); err != nil {
					t.Fatal(err)
				}
			}
			exec("CREATE TABLE " + table + "_local (dt Date, shop UInt32, channel Nullable(String), pv UInt32) ENGINE = MergeTree PARTITION BY dt ORDER BY shop")
			exec("CREATE TABLE " + table + " AS " + table + "_local ENGINE = Distributed(lab, " + strings.Replace(table, ".", ", ", 1) + "_local)")
			exec("INSERT INTO " + table + "_local SELECT * FROM " + database + ".events_local")
			j := newJob(t, s, "DATABASE.events", table, "periods:", "scatter: {strategy: hash, slices: 5}\nperiods:")
			o := j.command("plan", "JOB", "--date", date, "--json")
			file := filepath.Join(t.TempDir(), "plan.json")
			if err := os.WriteFile(file, []byte(o.stdout), 0o600); err != nil || o.code != 0 {
				t.Fatalf("%v: %v", err, o)
			}
			// The job would make one slice now; the plan has five.
			o = j.run(0, "--plan", file, "--config-override", "scatter.slices=1")
			if !strings.Contains(o.stdout, "       5  ") {
				t.Errorf("%v", o)
			}
			refused := func(code int, says string, more ...string) {
				t.Helper()
				if o := j.run(code, more...); !strings.Contains(o.stderr, says) || !strings.Contains(o.stderr, "→") {
					t.Errorf("no %q: %v", says, o)
				}
			}
			refused(3, "is not what the job asks today", "--plan", file, "--config-override", "metrics.pv=max(pv)")
			refused(2, "is not a plan", "--plan", j.path)
			refused(2, "no such file", "--plan", file+".absent")
			exec("INSERT INTO " + table + "_local SELECT * FROM " + database + ".events_local LIMIT 1")
			refused(3, "the source has changed since the plan was made", "--plan", file)
		})
	}
}
