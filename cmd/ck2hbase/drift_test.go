package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

const dayBefore = "2026-11-28"

// driftTable makes a table with one row a partition: shop 0 has many, so that a
// query that sleeps for each row has one long slice; shop 9 has two of the day, and
// shop 20 one of the day before. Shop 8's row lies in two parts, which can be merged.
func (s *source) driftTable(t *testing.T) string {
	t.Helper()
	s.loaded(t)
	name := fmt.Sprintf("%s.drift_%d", database, names.Add(1))
	for _, sql := range []string{
		"CREATE TABLE " + name + "_local (dt Date, shop UInt32, pv UInt32, v UInt32) ENGINE = MergeTree PARTITION BY (dt, shop, pv) ORDER BY shop",
		"CREATE TABLE " + name + " AS " + name + "_local ENGINE = Distributed(lab, " + strings.Replace(name, ".", ", ", 1) + "_local)",
		"INSERT INTO " + name + "_local SELECT toDate('" + date + "'), toUInt32(0), toUInt32(number), 1 FROM numbers(16)",
		"INSERT INTO " + name + "_local SELECT toDate('" + date + "'), toUInt32(number), 1, 1 FROM numbers(11) WHERE number > 0",
		"INSERT INTO " + name + "_local SELECT toDate('" + date + "'), toUInt32(8), 1, 1",
		"INSERT INTO " + name + "_local SELECT toDate('" + date + "'), toUInt32(9), 2, 1",
		"INSERT INTO " + name + "_local SELECT toDate('" + dayBefore + "'), toUInt32(20), 3, 1",
		"INSERT INTO " + name + "_local SELECT toDate('2026-01-01'), toUInt32(21), 3, 1",
	} {
		if err := s.ExecAll(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// A driftJob is a slow job over a table of its own.
type driftJob struct {
	*testJob
	table string
}

func newDriftJob(t *testing.T, s *source, onChange, periods string) *driftJob {
	t.Helper()
	table := s.driftTable(t)
	return &driftJob{newJob(t, s, "DATABASE.events", table, "  where:", "  on_change: "+onChange+"\n  where:",
		"  - {name: channel, expr: channel, null: {literal: \"-none-\"}}\n", "", "|{channel:esc}", "",
		"  pv: sum(pv)\n  rows: {expr: count(), encode: text}\n  newest: max(dt)\n",
		"  pv: {expr: sum(pv), encode: text}\n  v: {expr: sum(v), encode: text}\n  n: {expr: \"max(nullIf(pv, 1))\", encode: text}\n  slow: max(pv + sleepEachRow(1))\n",
		"periods: [DAY]", "scatter: {strategy: hash, slices: 12}\nperiods: ["+periods+"]"), table}
}

// during runs the job and lets statements run on all nodes in the middle of it.
func (j *driftJob) during(statements ...string) (outcome, driftResult) {
	j.t.Helper()
	stderr, done := j.background(j.t.Context(), "run", "JOB", "--date", date, "--json")
	j.untilMidway()
	j.exec(statements...)
	var o outcome
	select {
	case o = <-done:
	case <-time.After(3 * time.Minute):
		j.t.Fatalf("the run does not end: %s", stderr)
	}
	var r driftResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		j.t.Fatalf("%v: %v", err, o)
	}
	return o, r
}

func (j *driftJob) exec(statements ...string) {
	j.t.Helper()
	for _, sql := range statements {
		if err := j.source.ExecAll(j.t.Context(), strings.ReplaceAll(sql, "LOCAL", j.table+"_local")); err != nil {
			j.t.Fatal(err)
		}
	}
}

type driftResult struct {
	State string
	Error *struct{ Message string }
	Units []struct {
		Period        string
		Since         int64
		SourceChanged bool `json:"source_changed"`
	}
	SourceUnknown string `json:"source_unknown"`
	SourceReruns  int    `json:"source_reruns"`
	SourceChanges []struct {
		Partition  string
		Node       string
		RowsBefore uint64 `json:"rows_before"`
		RowsAfter  uint64 `json:"rows_after"`
		Mutated    bool
	} `json:"source_changes"`
}

// exact compares the table with what the source has now: all rows, and all cells but the slow one.
func (j *driftJob) exact(periods map[string]string) {
	j.t.Helper()
	want := map[string]map[string]string{}
	for period, from := range periods {
		for _, line := range j.source.ask(j.t, "SELECT shop, sum(pv), sum(v), max(nullIf(pv, 1)) FROM "+j.table+" WHERE dt BETWEEN '"+from+"' AND '"+date+"' GROUP BY shop") {
			f := strings.Split(line, "\t")
			cells := map[string]string{"pv": f[1], "v": f[2], "n": f[3]}
			if f[3] == `\N` {
				delete(cells, "n")
			}
			want["1|"+f[0]+"|"+period+"|"+date] = cells
		}
	}
	got := j.cells()
	for _, cells := range got {
		delete(cells, "slow")
	}
	if len(want) == 0 || !maps.EqualFunc(want, got, maps.Equal[map[string]string]) {
		j.t.Errorf("in HBase %v\nin ClickHouse %v", got, want)
	}
}

var today = map[string]string{"DAY": date}

// Statements that change the source in the middle of a run.
const (
	moreRows  = "INSERT INTO LOCAL SELECT toDate('" + date + "'), toUInt32(7), 1, 1"
	newShop   = "INSERT INTO LOCAL SELECT toDate('" + date + "'), toUInt32(50), 5, 1"
	otherRows = "INSERT INTO LOCAL SELECT toDate('2026-01-01'), toUInt32(7), 1, 1"
	// shopGone takes a row from the result, and cellGone a metric's cell.
	shopGone  = "ALTER TABLE LOCAL DROP PARTITION ('" + date + "', 10, 1)"
	cellGone  = "ALTER TABLE LOCAL DROP PARTITION ('" + date + "', 9, 2)"
	otherGone = "ALTER TABLE LOCAL DROP PARTITION ('2026-01-01', 21, 3)"
	merge     = "OPTIMIZE TABLE LOCAL FINAL"
)

// A source that changes under a run is published with a warning, not
// published, or gathered again, as the job says.
func TestSourceChanges(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name+"/warn", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "warn", "DAY")
			o, r := j.during(moreRows)
			if o.code != 0 || len(r.SourceChanges) != 3 || !r.Units[0].SourceChanged || !strings.Contains(o.stderr, "the source changed during the run") {
				t.Errorf("%v", o)
			}
			for _, c := range r.SourceChanges {
				if c.RowsBefore != 1 || c.RowsAfter != 2 || c.Mutated || c.Node == "" || !strings.Contains(o.stderr, c.Partition+" at ") {
					t.Errorf("%+v: %v", c, o)
				}
			}
		})
		t.Run(s.name+"/fail", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "fail", "DAY")
			o, r := j.during(moreRows)
			if o.code != 8 || len(r.SourceChanges) != 3 || !strings.Contains(o.stderr, "the source changed during the run: partition ") || !strings.Contains(o.stderr, "→ nothing was published") {
				t.Errorf("%v", o)
			}
			if p := j.published(); len(p) > 0 {
				t.Errorf("it was published: %v", p)
			}
			// At rest the same command succeeds.
			if o := j.run(0, "--config-override", "metrics.slow=max(pv)"); strings.Contains(o.stdout, "changed") {
				t.Errorf("%v", o)
			}
			j.exact(today)
		})
		t.Run(s.name+"/rerun", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "rerun_changed_partitions", "DAY")
			o, r := j.during(newShop, moreRows, shopGone, cellGone)
			if o.code != 0 || r.SourceReruns != 1 || r.Units[0].SourceChanged || len(r.SourceChanges) != 0 {
				t.Errorf("%v", o)
			}
			j.exact(today)
			j.oneTimestampEach()
		})
		t.Run(s.name+"/rerun of what is concerned", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "rerun_changed_partitions", "DAY, BY_LAST_DAYS_2")
			o, r := j.during("INSERT INTO LOCAL SELECT toDate('" + dayBefore + "'), toUInt32(7), 1, 1")
			if o.code != 0 || r.SourceReruns != 1 || len(r.Units) != 2 || r.Units[0].Since >= r.Units[1].Since {
				t.Errorf("%v", o)
			}
			j.exact(map[string]string{"DAY": date, "BY_LAST_DAYS_2": dayBefore})
			j.oneTimestampEach()
			if p := j.published(); p[date+"/1/DAY"] != r.Units[0].Since || p[date+"/1/BY_LAST_DAYS_2"] != r.Units[1].Since {
				t.Errorf("the pointers are %v: %v", p, o)
			}
		})
		t.Run(s.name+"/no change", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "fail", "DAY")
			o, r := j.during(merge, otherRows, otherGone, merge)
			if o.code != 0 || len(r.SourceChanges) > 0 || r.SourceUnknown != "" || r.Units[0].SourceChanged {
				t.Errorf("%v", o)
			}
			j.exact(today)
		})
		t.Run(s.name+"/dropped partition", func(t *testing.T) {
			t.Parallel()
			j := newDriftJob(t, s, "fail", "DAY")
			o, r := j.during(shopGone)
			if o.code != 8 || len(r.SourceChanges) != 3 || r.SourceChanges[0].RowsBefore != 1 || r.SourceChanges[0].RowsAfter != 0 {
				t.Errorf("%v", o)
			}
		})
	}
	t.Run("mutation", func(t *testing.T) {
		t.Parallel()
		j := newDriftJob(t, modern, "fail", "DAY")
		o, r := j.during("ALTER TABLE LOCAL UPDATE v = 7 WHERE shop = 6 SETTINGS mutations_sync = 2")
		if o.code != 8 || len(r.SourceChanges) == 0 || !r.SourceChanges[0].Mutated || !strings.Contains(o.stderr, "mutated") {
			t.Errorf("%v", o)
		}
	})
}

// oneTimestampEach wants no cell but those that the pointers lead to: each row
// at its pointer's timestamp.
func (j *driftJob) oneTimestampEach() {
	j.t.Helper()
	pointers := j.published()
	hb := hbaseClient(j.t)
	err := hb.ScanRows(j.t.Context(), j.name, nil, func(r hbase.Row) error {
		f := strings.Split(string(r.Key), "|")
		t := pointers[date+"/1/"+f[2]]
		at, err := hb.Get(j.t.Context(), j.name, r.Key, t, t+1)
		if err != nil {
			return err
		}
		before, err := hb.Get(j.t.Context(), j.name, r.Key, 0, t)
		if err != nil {
			return err
		}
		if len(at.Cells) != len(r.Cells) || len(before.Cells) != 0 {
			j.t.Errorf("row %q: %d cells at the pointer's timestamp, %d before, %d in all", r.Key, len(at.Cells), len(before.Cells), len(r.Cells))
		}
		return nil
	})
	if err != nil {
		j.t.Fatal(err)
	}
}

// A source that never rests is given up after a few rounds; what was written
// is removed by the next run.
func TestSourceNeverRests(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, filter, filter+" AND (shop < 30 OR "+atVerify+")", "  where:", "  on_change: rerun_changed_partitions\n  where:")
	const atRest = "source.where=dt BETWEEN {start} AND {end} AND shop < 30"
	j.run(0, "--config-override", atRest)
	readers := j.published()
	o := j.run(8)
	if !strings.Contains(o.stderr, "after 3 more rounds the source still changes") || !strings.Contains(o.stdout, "in 3 more rounds") {
		t.Errorf("%v", o)
	}
	if p := j.published(); !maps.Equal(p, readers) {
		t.Errorf("it was published: %v, before %v", p, readers)
	}
	// Four rounds have written, and HBase keeps two versions of a cell: the
	// published run must still be there.
	hb, since := hbaseClient(t), readers[date+"/11/DAY"]
	for key, cells := range j.cells() {
		if r, err := hb.Get(t.Context(), j.name, []byte(key), since, since+1); err != nil || len(r.Cells) != len(cells) {
			t.Errorf("row %q of the published run has %d cells: %v", key, len(r.Cells), err)
		}
	}
	o = j.run(0, "--config-override", atRest)
	if !strings.Contains(o.stderr, "removed the cells of a run that was not published") {
		t.Errorf("%v", o)
	}
	j.exact(j.truth("shop < 30"))
}

// Killed while it gathers again, a run leaves cells at two timestamps: the next one removes both.
func TestKilledWhileGatheringAgain(t *testing.T) {
	t.Parallel()
	d := newDriftJob(t, modern, "rerun_changed_partitions", "DAY, BY_LAST_DAYS_2")
	p := d.start("run", "JOB", "--date", date)
	d.untilMidway()
	d.exec("INSERT INTO LOCAL SELECT toDate('" + dayBefore + "'), toUInt32(7), 1, 1")
	wait(t, "the second round", func() bool { return strings.Contains(p.stderr.String(), "is gathered again") })
	d.exec(shopGone)
	rows := func() map[int64]int {
		all := map[int64]int{}
		_ = hbaseClient(t).ScanRows(t.Context(), d.name, nil, func(r hbase.Row) error { all[r.Cells[0].Timestamp]++; return nil })
		return all
	}
	wait(t, "rows of two rounds", func() bool { return len(rows()) == 2 })
	p.signal(syscall.SIGKILL)
	p.wait()
	o := d.run(0, "--config-override", "metrics.slow=max(pv)")
	if !strings.Contains(o.stderr, "removed the cells of a run that was not published") {
		t.Errorf("%v", o)
	}
	d.testJob.t.Log(rows())
	d.exact(map[string]string{"DAY": date, "BY_LAST_DAYS_2": dayBefore})
}

// Where changes cannot be told, a job that asks for it is refused before
// anything is written, and another says so.
func TestSourceWithoutParts(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.loaded(t)
			name := fmt.Sprintf("%s.memory_%d", database, names.Add(1))
			for _, sql := range []string{
				"CREATE TABLE " + name + "_local AS " + database + ".events_local ENGINE = Memory",
				"CREATE TABLE " + name + " AS " + name + "_local ENGINE = Distributed(lab, " + strings.Replace(name, ".", ", ", 1) + "_local)",
				"INSERT INTO " + name + "_local SELECT * FROM " + database + ".events_local",
			} {
				if err := s.ExecAll(context.WithoutCancel(t.Context()), sql); err != nil {
					t.Fatal(err)
				}
			}
			for _, mode := range []string{"fail", "rerun_changed_partitions"} {
				wrong{replace: []string{"DATABASE.events", name, "  where:", "  on_change: " + mode + "\n  where:"}, code: 3,
					says: []string{"JOB:8:14: ", "has the engine Memory", "→ name a Distributed table over MergeTree tables"}}.test(t, s)
			}
			o := newJob(t, s, "DATABASE.events", name).run(0)
			if !strings.Contains(o.stdout, "it cannot be told whether the source changes") || !strings.Contains(o.stderr, "has the engine Memory") {
				t.Errorf("%v", o)
			}
		})
	}
}
