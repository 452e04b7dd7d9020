package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

// filter is the job's filter, which tests add conditions to.
const filter = "dt BETWEEN {start} AND {end}"

// atVerify is true in the queries of the verification alone: the source as
// the run does not see it, as if it had changed in between.
const atVerify = "initialQueryID() LIKE '%-verify-%'"

// failed runs the job, wants a class of failure with a message, and that
// readers see nothing.
func (j *testJob) failed(code int, says ...string) {
	j.t.Helper()
	o := j.run(code)
	for _, text := range says {
		if !strings.Contains(o.stderr, text) {
			j.t.Errorf("the message has no %q: %v", text, o)
		}
	}
	if p := j.published(); len(p) > 0 {
		j.t.Errorf("a failed run was published: %v", p)
	}
	if title, _, _ := strings.Cut(o.stdout, "\n"); strings.HasSuffix(title, "published") || strings.Contains(o.stdout, " yes\n") {
		j.t.Errorf("the report does not say so: %v", o)
	}
	j.t.Logf("%s", o.stderr)
}

func TestExitSource(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name+"/metric that throws midway", func(t *testing.T) {
			t.Parallel()
			newJob(t, s, "sum(pv)", "sum(pv + throwIf(pv = 77))").failed(4, "code 395", "throwIf", "→")
		})
		t.Run(s.name+"/time limit", func(t *testing.T) {
			t.Parallel()
			newSlowJob(t, s, "periods:", "limits: {max_execution_time: 1s}\nperiods:").failed(4, "slice", "code 159", "→ raise the limit")
		})
		t.Run(s.name+"/NULL without a policy", func(t *testing.T) {
			t.Parallel()
			newJob(t, s, `, null: {literal: "-none-"}`, "").failed(4, "channel", "NULL", "→")
		})
	}
	t.Run("memory limit", func(t *testing.T) {
		t.Parallel()
		// The text of one row is larger than the limit.
		newJob(t, modern, "sum(pv)", "length(groupArray(repeat(concat(toString(pv), repeat('x', 1000)), 20000)))",
			"periods:", "limits: {max_memory_usage: 6MiB}\nperiods:").failed(4, "code 241", "→ raise the limit")
	})
}

// P3: a difference is no success, whichever side has more.
func TestExitMismatch(t *testing.T) {
	t.Parallel()
	for name, condition := range map[string]string{
		"more in ClickHouse": filter + " AND (shop < 30 OR " + atVerify + ")",
		"more in HBase":      filter + " AND (shop < 30 OR NOT " + atVerify + ")",
		"nothing left":       filter + " AND NOT " + atVerify,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newJob(t, modern, filter, condition).failed(6, "groups in ClickHouse", "row keys in HBase", "mismatch", "→ nothing was published")
		})
	}
	t.Run("rows that HBase dropped", func(t *testing.T) {
		t.Parallel()
		// The slow slice is done long after the others' rows have expired.
		newSlowJob(t, modern, "    row_key:", "    create: {ttl: 3s}\n    row_key:").failed(6, "21 groups in ClickHouse", "mismatch")
	})
}

// midway runs a slow job until it has written rows, then lets happen what
// happens, and returns the outcome.
func (j *testJob) midway(happens func()) outcome {
	j.t.Helper()
	done := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(j.t.Context())
	defer cancel()
	go func() { done <- j.commandIn(ctx, new(locked), "run", "JOB", "--date", date) }()
	j.untilMidway()
	happens()
	select {
	case o := <-done:
		return o
	case <-time.After(4 * time.Minute): // a run waits for two for HBase to come back
		j.t.Fatal("the run does not end")
		return outcome{}
	}
}

func TestExitSink(t *testing.T) {
	t.Parallel()
	admin := func(t *testing.T, f func(*hbase.Client) error) {
		t.Helper()
		if err := f(hbaseClient(t)); err != nil {
			t.Error(err)
		}
	}
	for name, happens := range map[string]func(*testing.T, *testJob){
		"disabled": func(t *testing.T, j *testJob) {
			admin(t, func(hb *hbase.Client) error { return hb.DisableTable(t.Context(), j.name) })
		},
		"dropped": func(t *testing.T, j *testJob) {
			admin(t, func(hb *hbase.Client) error { return hb.DropTable(t.Context(), j.name) })
		},
	} {
		t.Run("table "+name, func(t *testing.T) {
			t.Parallel()
			j := newSlowJob(t, modern)
			o := j.midway(func() { happens(t, j) })
			if o.code != 5 || !strings.Contains(o.stderr, j.name) || !strings.Contains(o.stderr, "→") {
				t.Errorf("want exit code 5: %v", o)
			}
			j.noQueries()
			if p := j.published(); len(p) > 0 {
				t.Errorf("it was published: %v", p)
			}
			t.Logf("%s", o.stderr)
		})
	}
}

// HBase that cannot be reached any more ends the run within the lease's time:
// another run may think by then that this one is dead.
func TestExitSinkGone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cut", "mute"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			servers := proxyHBase(t)
			j := newSlowJob(t, modern, "[\"QUORUM\"]\n", "[\"QUORUM\"]\n        node_map: "+servers.nodeMap()+"\n")
			o := j.midway(map[string]func(){"cut": servers.cut, "mute": servers.mute}[how])
			if o.code != 8 || !strings.Contains(o.stderr, "lease") {
				t.Errorf("want exit code 8: %v", o)
			}
			j.noQueries()
			if p := j.published(); len(p) > 0 {
				t.Errorf("it was published: %v", p)
			}
			t.Logf("%v %s", o.took, o.stderr)
		})
	}
}

// P6: two runs of one job and date do not interleave. Another date is another
// matter.
func TestP6Locked(t *testing.T) {
	t.Parallel()
	j := newSlowJob(t, modern)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- j.commandIn(ctx, new(locked), "run", "JOB", "--date", date) }()
	j.untilMidway()
	before := j.cells()
	o := j.command("run", "JOB", "--date", date, "--config-override", quick)
	if o.code != 7 || !strings.Contains(o.stderr, "holds the lease of this job and date") || !strings.Contains(o.stderr, "→ let it finish") || o.stdout != "" {
		t.Errorf("want exit code 7: %v", o)
	}
	if o := j.command("run", "JOB", "--date", "2026-11-30", "--config-override", "verify.allow_empty=true", "--config-override", quick); o.code != 0 {
		t.Errorf("the next day: %v", o)
	}
	if after := j.cells(); len(after) < len(before) {
		t.Errorf("rows of the first run are gone: %d of %d", len(after), len(before))
	}
	cancel()
	if o := <-done; o.code != 8 {
		t.Errorf("the first run: %v", o)
	}
}
