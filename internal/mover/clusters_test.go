package mover_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/mover"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// twoClusters is the traffic job over a week in two clusters.
type twoClusters struct {
	c           *lab.Cluster
	name, table string
	quorums     [2]string
}

func (w twoClusters) job(t *testing.T, require string, quorums [2]string) *job.Job {
	t.Helper()
	text, err := os.ReadFile("../../examples/traffic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	one := `- zookeeper: ["${CK2HBASE_ZOOKEEPER}"]`
	two := fmt.Sprintf("- {name: a, zookeeper: [%q]}\n      - {name: b, zookeeper: [%q]}\n    require: %s", quorums[0], quorums[1], require)
	j, err := job.Parse("two.yaml", []byte(strings.Replace(string(text), one, two, 1)), job.Options{LookupEnv: env(t, w.c), Overrides: []string{
		"name=" + w.name, "sink.hbase.table=" + w.table, "source.table=" + database + ".traffic", "periods.0=BY_LAST_DAYS_7",
		"limits.max_memory_usage=2GB", "limits.max_bytes_before_external_group_by=1GB", "scatter.slices=6",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// states are those of the clusters in a report.
func states(r *report.Result) string {
	var all []string
	for _, c := range r.Clusters {
		all = append(all, c.Name+" "+c.State)
	}
	return strings.Join(all, ", ")
}

// statuses are those of the clusters' ledgers, with the runs published.
func statuses(t *testing.T, j *job.Job) (states []string, runs []string) {
	t.Helper()
	date, err := job.ParseDate("2026-11-29")
	if err != nil {
		t.Fatal(err)
	}
	all, err := mover.Status(t.Context(), j, date, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		run := ""
		if len(s.Units) > 0 {
			run = s.Units[0].Run
		}
		states, runs = append(states, s.State), append(runs, run)
	}
	return states, runs
}

// rowsAt reads the rows of a cluster that its pointer shows.
func rowsAt(t *testing.T, j *job.Job, cluster int, since, until int64) map[string]string {
	t.Helper()
	hb := dialCluster(t, j, cluster)
	defer hb.Close()
	all := map[string]string{}
	var mu sync.Mutex
	_, err := hb.ScanKeys(t.Context(), j.HBase.Table, since, until, 2, func(key []byte) error {
		mu.Lock()
		defer mu.Unlock()
		all[string(key)] = ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func dialCluster(t *testing.T, j *job.Job, cluster int) *hbase.Client {
	t.Helper()
	hb, err := hbase.Dial(t.Context(), j.HBase.Clusters[cluster], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return hb
}

// TestTwoClusters goes through what becomes of two clusters of which the second
// is slow, away, back again, and gone.
func TestTwoClusters(t *testing.T) {
	c := servers[0].loaded(t)
	second, err := lab.StartHBase(t.Context(), lab.HBaseOptions{RegionServers: 1, Heap: "1g", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	}()
	w := twoClusters{c: c, name: unique(t, "two"), quorums: [2]string{lab.Shared(t).HBase(t).Quorum(), second.Quorum()}}
	w.table = w.name
	away := [2]string{w.quorums[0], "127.0.0.1:1"}
	all, any := w.job(t, "all", w.quorums), w.job(t, "any", w.quorums)
	dropAfter(t, all)

	// The second cluster stops in the middle. The first gets all rows meanwhile.
	m := newMover(t, all, "2026-11-29")
	rows := int(atoi(t, ask(t, c, "SELECT uniqExact(shop_id, first_source) FROM "+database+".traffic WHERE dt BETWEEN '2026-11-23' AND '2026-11-29'")[0][0]))
	var result *report.Result
	var wg sync.WaitGroup
	wg.Go(func() { result, err = m.Run(t.Context()) })
	waitFor(t, func() bool { return m.Progress.Snapshot().RowsWritten > 0 })
	pauseErr := second.Master.Pause()
	waitFor(t, func() bool { return len(rowsAt(t, all, 0, 0, 1<<62)) == rows })
	if err := second.Master.Resume(); err != nil || pauseErr != nil {
		t.Fatal(err, pauseErr)
	}
	wg.Wait()
	if err != nil || states(result) != "a published, b published" {
		t.Fatalf("%v: %s", err, states(result))
	}
	both := func(r *report.Result) {
		t.Helper()
		a := rowsAt(t, all, 0, r.Clusters[0].Since, r.Clusters[0].Until)
		b := rowsAt(t, all, 1, r.Clusters[1].Since, r.Clusters[1].Until)
		if len(a) != rows || !maps.Equal(a, b) {
			t.Errorf("%d and %d rows of %d", len(a), len(b), rows)
		}
	}
	both(result)
	first := result.Run

	// It is away: all is refused before anything is written, any goes on.
	if result, err = newMover(t, w.job(t, "all", away), "2026-11-29").Run(t.Context()); failure.ClassOf(err) != failure.Preflight {
		t.Errorf("require: all with a cluster that is away: %v, %s", err, states(result))
	}
	if result, err = newMover(t, w.job(t, "any", away), "2026-11-29").Run(t.Context()); err != nil || !strings.HasPrefix(states(result), "a published, b ") || result.Clusters[1].Error == "" {
		t.Fatalf("require: any with a cluster that is away: %v, %s", err, states(result))
	}
	newer := result.Run
	if s, runs := statuses(t, any); fmt.Sprint(s) != "[published behind]" || runs[0] != newer || runs[1] != first {
		t.Errorf("%v %v", s, runs)
	}

	// It is back: the next run is for it alone.
	if result, err = newMover(t, all, "2026-11-29").Run(t.Context()); err != nil || states(result) != "a up to date, b published" {
		t.Fatalf("%v: %s", err, states(result))
	}
	if s, runs := statuses(t, all); fmt.Sprint(s) != "[published published]" || runs[0] != newer || runs[1] != result.Run {
		t.Errorf("%v %v", s, runs)
	}

	// Both are level: the run after that is for both.
	if result, err = newMover(t, any, "2026-11-29").Run(t.Context()); err != nil || states(result) != "a published, b published" {
		t.Fatalf("%v: %s", err, states(result))
	}
	both(result)

	// It is killed: readers find the rows in the other, wherever that stands.
	if err := second.Master.Kill(); err != nil {
		t.Fatal(err)
	}
	turned := w.job(t, "any", [2]string{w.quorums[1], w.quorums[0]})
	if result, err = newMover(t, turned, "2026-11-29").Run(t.Context()); err != nil || !strings.HasSuffix(states(result), ", b published") {
		t.Fatalf("%v: %s", err, states(result))
	}
	shop := ask(t, c, "SELECT shop_id, first_source, sum(pv) FROM "+database+".traffic WHERE dt BETWEEN '2026-11-23' AND '2026-11-29' GROUP BY shop_id, first_source LIMIT 1")[0]
	found, err := mover.Lookup{Job: turned, Values: map[string]string{"shop_id": shop[0], "first_source": shop[1]}, Log: slog.New(slog.DiscardHandler)}.Get(t.Context())
	if err != nil || len(found) != 1 || found[0].Run != result.Run || fmt.Sprint(found[0].Metrics[0].Value) != shop[2] {
		t.Errorf("%+v, %v, want %v", found, err, shop)
	}
}

// waitFor waits for what happens in the end.
func waitFor(t *testing.T, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !happened() {
		if ctx.Err() != nil {
			t.Fatal("it did not happen")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
