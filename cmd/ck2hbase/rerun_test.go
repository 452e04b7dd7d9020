package main

import (
	"strings"
	"testing"
)

// pv is what get shows of a shop: its pv and the run's id.
func (j *testJob) pv(shop, day string) (pv, run string) {
	j.t.Helper()
	lines := j.get("shop="+shop, "--date", day)
	if len(lines) != 1 {
		j.t.Fatalf("%+v", lines)
	}
	b, ok := lines[0].Metrics["pv"]
	if !ok {
		return "", lines[0].Run
	}
	return asJSON(j.t.(*testing.T), b), lines[0].Run
}

// P2: readers see the old run or the new one, whatever happens to the new one.
func TestP2Rerun(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "  - {name: channel, expr: channel, null: {literal: \"-none-\"}}\n", "", "|{channel:esc}", "", filter, filter+" AND shop < 30")
	truth := func(day, expr, shop string) string {
		return modern.ask(t, "SELECT "+expr+" FROM "+database+".events WHERE dt = '"+day+"' AND shop = "+shop)[0]
	}
	expect := func(when, day, shop, want, run string) string {
		t.Helper()
		pv, by := j.pv(shop, day)
		if pv != want || run != "" && by != run {
			t.Errorf("%s: shop %s on %s has %s of run %s, want %s of %s", when, shop, day, pv, by, want, run)
		}
		return by
	}
	j.run(0)
	first := j.published()
	run1 := expect("first run", date, "7", truth(date, "sum(pv)", "7"), "")

	// Other values, and one shop less: what it left must not be seen.
	j.run(0, "--config-override", "metrics.pv=sum(pv) * 2", "--config-override", "source.where=dt BETWEEN {start} AND {end} AND shop < 30 AND shop != 9")
	second := j.published()
	run2 := expect("second run", date, "7", truth(date, "sum(pv) * 2", "7"), "")
	expect("second run", date, "9", "", run2)
	const key = date + "/1/DAY"
	if len(first) != 1 || len(second) != 1 || second[key] <= first[key] || run1 == run2 {
		t.Errorf("the pointers were %v and then %v", first, second)
	}

	// Another date has a pointer of its own.
	const other = "2026-11-28"
	if o := j.command("run", "JOB", "--date", other); o.code != 0 {
		t.Fatalf("%v", o)
	}
	expect("other date", other, "7", truth(other, "sum(pv)", "7"), "")
	expect("other date", date, "7", truth(date, "sum(pv) * 2", "7"), run2)
	if p := j.published(); len(p) != 2 || p[key] != second[key] {
		t.Errorf("the pointers are %v, before %v", p, second)
	}

	// This run writes all of its rows and is not published then.
	mismatch := []string{"--config-override", "metrics.pv=sum(pv) * 3", "--config-override", "source.where=dt BETWEEN {start} AND {end} AND (shop < 30 OR " + atVerify + ")"}
	j.run(6, mismatch...)
	expect("failed run", date, "7", truth(date, "sum(pv) * 2", "7"), run2)
	expect("failed run", date, "9", "", run2)
	// And this one some.
	j.run(4, "--config-override", "metrics.pv=sum(pv + throwIf(shop = 11))", "--config-override", "scatter.slices=30")
	expect("broken run", date, "7", truth(date, "sum(pv) * 2", "7"), run2)
	if p := j.published(); p[key] != second[key] {
		t.Errorf("the pointer is %d, before %d", p[key], second[key])
	}
}

// P2: two jobs that write the same keys of one table would push each other's
// published rows out of it.
func TestP2TwoJobsOnOneTable(t *testing.T) {
	t.Parallel()
	first := newJob(t, modern)
	first.run(0)
	second := newJob(t, modern)
	table := "sink.hbase.table=" + first.name
	if o := second.command("run", "JOB", "--date", date, "--config-override", table); o.code != 3 ||
		!strings.Contains(o.stderr, "job "+first.name+" writes to table "+first.name+" too") || !strings.Contains(o.stderr, "→ begin row_key") {
		t.Errorf("%v", o)
	}
	first.run(0)
}
