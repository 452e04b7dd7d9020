package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A replicaJob is a job whose heavy slices take seconds and whose light ones
// take half a second at most.
type replicaJob struct {
	*testJob
	lab *replicaLab
}

func (l *replicaLab) job(t *testing.T, strategy string, replace ...string) *replicaJob {
	t.Helper()
	j := newJob(t, l.source, append([]string{
		"DATABASE.events", "DATABASE.placed", "username: mover", "username: sixtraps",
		"metrics:\n", "limits: {max_execution_time: 20s}\nscatter: {strategy: " + strategy + ", slices: 16}\nmetrics:\n  slow: max(pv + sleepEachRow(0.25))\n",
	}, replace...)...)
	j.env["TEST_PASSWORD"] = trapPassword
	j.forbidden = append(j.forbidden, trapPassword)
	return &replicaJob{j, l}
}

// exact wants the table in HBase to be the truth, cell by cell.
func (j *replicaJob) exact() {
	j.t.Helper()
	j.equals(j.lab.truth)
}

func (j *replicaJob) equals(truth map[string]map[string]string) {
	j.t.Helper()
	got := j.cells()
	for _, cells := range got {
		cells["pv"], cells["slow"] = long(cells["pv"]), long(cells["slow"])
	}
	if !maps.EqualFunc(truth, got, maps.Equal[map[string]string]) {
		j.t.Errorf("%d rows in HBase, %d in ClickHouse: %.2000s\n%.2000s", len(got), len(truth), fmt.Sprint(got), fmt.Sprint(truth))
	}
}

// busy waits until a run has written rows, and for a node that is at a heavy
// slice; it gives one whose shard is not a certain one, or nil and how the run
// ended if it ended before.
func (j *replicaJob) busy(notShard int, done chan outcome) (busy *lab.Node, early outcome) {
	j.t.Helper()
	sql := "SELECT count() FROM system.processes WHERE is_initial_query AND query_id LIKE 'ck2hbase-%' AND query LIKE '%" + j.name + "%' AND query LIKE '%sleepEachRow%' AND elapsed > 0.8"
	hb := hbaseClient(j.t)
	written := false
	wait(j.t, "a run that has written rows and a node at a heavy slice", func() bool {
		select {
		case early = <-done:
			return true
		default:
		}
		if !written {
			table, err := hb.Table(j.t.Context(), j.name)
			written = err == nil && table != nil && table.Enabled && len(j.cells()) > 0
		}
		for _, n := range j.lab.Nodes {
			if !written || n.Shard == notShard || !n.Running() {
				continue
			}
			if out, err := n.Query(j.t.Context(), sql); err == nil && strings.TrimSpace(out) != "0" {
				busy = n
				return true
			}
		}
		return false
	})
	return busy, early
}

// during runs the job and lets happen something to a node that is at a heavy
// slice. A run that was over before anybody saw it at one, as on a machine with
// much else to do, is made again, after what is to be done before each run.
func (j *replicaJob) during(notShard int, happens func(*lab.Node) error, before ...func()) (outcome, *lab.Node) {
	j.t.Helper()
	for range 5 {
		for _, f := range before {
			f()
		}
		stderr, done := j.background(j.t.Context(), "run", "JOB", "--date", date)
		n, early := j.busy(notShard, done)
		if n == nil && early.code == 0 {
			j.t.Logf("the run was over too soon: %v", early)
			continue
		}
		if n == nil {
			j.t.Fatalf("the run has ended: %v", early)
		}
		begin := time.Now()
		if err := happens(n); err != nil {
			j.t.Fatal(err)
		}
		select {
		case o := <-done:
			o.took = time.Since(begin)
			return o, n
		case <-time.After(4 * time.Minute):
			j.t.Fatalf("the run does not end: %s", stderr)
		}
	}
	j.t.Fatal("each run was over before a node was seen at a heavy slice")
	return outcome{}, nil
}

// gone wants the job's queries to be gone from the nodes that live.
func (j *replicaJob) gone() {
	j.t.Helper()
	left := func() (all []string) {
		for _, n := range j.lab.Nodes {
			if !n.Running() {
				continue
			}
			out, err := n.Query(j.t.Context(), "SELECT query_id FROM system.processes WHERE query LIKE '%"+j.name+"%' AND query NOT LIKE '%system.processes%'")
			if err != nil {
				j.t.Fatal(err)
			}
			all = append(all, strings.Fields(out)...)
		}
		return all
	}
	wait(j.t, "the end of all queries", func() bool { return len(left()) == 0 })
}

// revive starts the nodes that are dead.
func (l *replicaLab) revive(t *testing.T) {
	t.Helper()
	for _, n := range l.Nodes {
		if n.Running() {
			continue
		}
		if err := n.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.upToDate(t, n)
	}
}

// upToDate waits until a node that was started knows that its replica has all
// rows; until then the others do not ask it (code 369).
func (l *replicaLab) upToDate(t *testing.T, n *lab.Node) {
	t.Helper()
	if l.ZooKeeper == "" {
		return
	}
	wait(t, "a replica that is up to date", func() bool {
		out, err := n.Query(t.Context(), "SELECT count() FROM system.replicas WHERE is_readonly OR is_session_expired OR absolute_delay > 0")
		return err == nil && strings.TrimSpace(out) == "0"
	})
}
