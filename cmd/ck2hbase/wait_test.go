package main

import (
	"strings"
	"testing"
)

// wait ends when the last cluster that the job requires has the date, whoever
// publishes it, and says what is missing when the time is over.
func TestWait(t *testing.T) {
	t.Parallel()
	one := newJob(t, modern)
	if o := one.command("wait", "JOB", "--date", date, "--timeout", "0s"); o.code != 8 || !strings.Contains(o.stderr, "level 11, period DAY") {
		t.Errorf("nothing is published: %v", o)
	}
	stderr, done := one.background(t.Context(), "wait", "JOB", "--date", date, "--timeout", "5m", "--log-format", "json")
	wait(t, "waiting", func() bool { return strings.Contains(stderr.String(), "not published yet") })
	one.run(0)
	if o := <-done; o.code != 0 || !strings.Contains(o.stdout, "primary") || !strings.Contains(o.stdout, "published") {
		t.Errorf("it was published: %v", o)
	}
	for require, code := range map[string]int{"any": 0, "all": 8} {
		j := newJob(t, modern, "[\"QUORUM\"]\n", "[\"QUORUM\"]\n      - {name: other, zookeeper: [\"127.0.0.1:1\"]}\n    require: any\n")
		j.run(0)
		o := j.command("wait", "JOB", "--date", date, "--timeout", "1s", "--config-override", "sink.hbase.require="+require)
		if o.code != code || code != 0 && !strings.Contains(o.stderr, "other: ") {
			t.Errorf("require: %s with a cluster that is away: %v", require, o)
		}
	}
	if o := one.command("wait", "JOB", "--date", date, "--timeout", "-1s"); o.code != 2 {
		t.Errorf("a negative timeout: %v", o)
	}
}
