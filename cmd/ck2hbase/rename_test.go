package main

import (
	"strings"
	"testing"
	"time"
)

// A column that is renamed between the plan and the slices ends the run: the
// same error would come from every node and at any time. Readers keep what they have.
func TestColumnRenamed(t *testing.T) {
	t.Parallel()
	for s, statements := range map[*source][]string{
		modern: {"ALTER TABLE LOCAL RENAME COLUMN v TO w"},
		old:    {"ALTER TABLE LOCAL ADD COLUMN w UInt32", "ALTER TABLE LOCAL DROP COLUMN v"}, // it cannot rename
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "warn", "DAY")
			j.run(0, "--config-override", "metrics.slow=max(pv)", "--config-override", "metrics.v.expr=sum(v) + 1000")
			before, row := j.published(), asJSON(t, j.get("shop=9"))

			// The slices run one after the other, a second each at least: when the
			// first is seen, the others are still to come.
			stderr, done := j.background(t.Context(), "run", "JOB", "--date", date, "--config-override", "scatter.parallel=1")
			wait(t, "the first slice", func() bool { return len(s.running(t, "sleepEachRow%"+j.name)) > 0 })
			j.exec(statements...)
			select {
			case o := <-done:
				if o.code != 4 || !strings.Contains(o.stderr, "v") || !strings.Contains(o.stderr, "→") || strings.Contains(o.stderr, "tried again") {
					t.Errorf("want exit code 4: %v", o)
				}
				t.Logf("%v", o)
			case <-time.After(time.Minute):
				t.Fatalf("the run does not end: %s", stderr)
			}
			j.noQueries()
			if p := j.published(); len(p) != 1 || p[date+"/1/DAY"] != before[date+"/1/DAY"] {
				t.Errorf("the pointers are %v, before %v", p, before)
			}
			if now := asJSON(t, j.get("shop=9")); now != row || !strings.Contains(now, "1006") {
				t.Errorf("readers see %s, before %s", now, row)
			}
		})
	}
}
