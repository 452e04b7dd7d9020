package scatter_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

var versions = map[string]func(*lab.Lab, testing.TB) *lab.Cluster{
	"26.9":  (*lab.Lab).ClickHouse,
	"18.16": (*lab.Lab).OldClickHouse,
}

func onEach(t *testing.T, test func(t *testing.T, c *lab.Cluster)) {
	for name, cluster := range versions {
		t.Run(name, func(t *testing.T) { test(t, cluster(lab.Shared(t), t)) })
	}
}

// database makes a database on every node that goes with the test.
func database(t *testing.T, c *lab.Cluster) string {
	t.Helper()
	name := fmt.Sprintf("scatter_%d", time.Now().UnixNano())
	if err := c.ExecAll(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE IF EXISTS "+name) })
	return name
}

func exec(t *testing.T, c *lab.Cluster, sql string) {
	t.Helper()
	if err := c.ExecAll(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, c *lab.Cluster, sql string) string {
	t.Helper()
	out, err := c.Nodes[0].Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.TrimSpace(out)
}

// newJob is a job with one level of the given dimensions over one day.
func newJob(table string, slices int, dims ...string) *job.Job {
	j := &job.Job{
		Name:    "test",
		Source:  job.Source{Cluster: lab.ClusterName, Table: table},
		Metrics: []job.Metric{{Name: "n", Expr: "sum(v)"}},
		Periods: []job.Period{"DAY"},
		Limits:  job.Limits{MaxExecutionTime: time.Minute, MaxMemoryUsage: 2 << 30, MaxBytesBeforeExternalGroupBy: 1 << 30},
		Scatter: job.Scatter{Slices: slices, PerNode: 1},
	}
	level := job.Level{Code: "1"}
	for i, d := range dims {
		j.Dimensions = append(j.Dimensions, job.Dimension{Name: fmt.Sprintf("d%d", i), Expr: d})
		level.Dimensions = append(level.Dimensions, i)
	}
	j.Levels = []job.Level{level}
	return j
}

func planner(t *testing.T, c *lab.Cluster, j *job.Job) *scatter.Planner {
	t.Helper()
	return newPlanner(nodes(t, c, j.Limits), j)
}

// newPlanner is a planner whose queries have ids of their own.
func newPlanner(connected []*clickhouse.Node, j *job.Job) *scatter.Planner {
	return &scatter.Planner{Job: j, Nodes: connected, Run: fmt.Sprintf("t%x", rand.Uint64()), Log: slog.New(slog.DiscardHandler)}
}

// date is the day that the tests plan for.
var date = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

func nodes(t *testing.T, c *lab.Cluster, limits job.Limits) []*clickhouse.Node {
	t.Helper()
	src := job.Source{Addresses: c.TCPAddrs()[:1], Cluster: lab.ClusterName, Username: lab.MoverUser, Password: lab.MoverPassword}
	client, err := clickhouse.Open(t.Context(), src, limits, 2, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client.Nodes()
}

func TestPlanCutsByTheLargestDimension(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (small UInt8, large Nullable(String), v UInt64) ENGINE = MergeTree ORDER BY small")
		exec(t, c, "CREATE TABLE "+db+".t AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l)")
		exec(t, c, "INSERT INTO "+db+".l SELECT number % 3, toString(number), 1 FROM (SELECT number FROM system.numbers LIMIT 3000)")
		j := newJob(db+".t", 0, "small", "large")
		j.Levels = append(j.Levels, job.Level{Code: "0", Dimensions: []int{0}})
		plan, err := planner(t, c, j).Plan(t.Context(), date)
		if err != nil {
			t.Fatal(err)
		}
		if u := plan.Units[0]; u.Dimension != "d1" || len(u.Slices) != len(c.Nodes) || u.Rows != 9000 {
			t.Errorf("cut by %s into %d slices of %d rows, want d1, %d, 9000", u.Dimension, len(u.Slices), u.Rows, len(c.Nodes))
		}
		if u := plan.Units[1]; u.Dimension != "d0" || len(u.Slices) > 3 {
			t.Errorf("level 0 cut by %s into %d slices; it has 3 values of d0", u.Dimension, len(u.Slices))
		}
		if n := plan.Units[0].Cardinality["d1"]; n < 2900 || n > 3100 {
			t.Errorf("d1 has about %d values, want 3000", n)
		}
		j.Scatter.Dimension = "d1"
		if _, err := planner(t, c, j).Plan(t.Context(), date); failure.ClassOf(err) != failure.Usage {
			t.Errorf("cutting level 0 by a dimension it lacks: %v", err)
		}
	})
}

func TestEmptySourceIsAskedAllTheSame(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (k UInt8, v UInt64) ENGINE = MergeTree ORDER BY k")
		plan, err := planner(t, c, newJob(db+".l", 0, "k")).Plan(t.Context(), date)
		if err != nil || plan.Slices() != 1 || plan.Rows() != 0 {
			t.Errorf("plan of an empty table: %v, %d slices, %d rows", err, plan.Slices(), plan.Rows())
		}
	})
}

func TestErrorsNameTheirPlace(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (k UInt8, v UInt64) ENGINE = MergeTree ORDER BY k")
		cases := map[string]func(*job.Job){
			"source.table":  func(j *job.Job) { j.Source.Table = db + ".nothing" },
			"source.where":  func(j *job.Job) { j.Source.Where = "nothing = 1" },
			"dimensions[0]": func(j *job.Job) { j.Dimensions[0].Expr = "nothing" },
			"metrics.n":     func(j *job.Job) { j.Metrics[0].Expr = "sum(nothing)" },
		}
		for path, change := range cases {
			j := newJob(db+".l", 0, "k")
			change(j)
			_, err := planner(t, c, j).Plan(t.Context(), date)
			if failure.ClassOf(err) != failure.Preflight || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nothing") {
				t.Errorf("%s: class %d, %v", path, failure.ClassOf(err), err)
			}
		}
	})
}
