package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// groups is the number of groups of the test's table: 0 to 998 and NULL.
const groups = 1000

// newChecker makes a table with known groups and a checker for it that finds
// the given keys in place of HBase's.
func newChecker(t *testing.T, c *lab.Cluster, keys []string) (*verify.Checker, *scatter.Plan) {
	t.Helper()
	db := fmt.Sprintf("verify_%d", time.Now().UnixNano())
	exec := func(sql string) {
		if err := c.ExecAll(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE " + db)
	t.Cleanup(func() { _ = c.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE "+db) })
	exec("CREATE TABLE " + db + ".l (k Nullable(UInt32)) ENGINE = MergeTree ORDER BY tuple()")
	exec("CREATE TABLE " + db + ".t AS " + db + ".l ENGINE = Distributed(" + lab.ClusterName + ", " + db + ", l)")
	exec("INSERT INTO " + db + ".l SELECT if(number % 1000 = 999, NULL, number % 1000) FROM (SELECT number FROM system.numbers LIMIT 2000)")
	j := &job.Job{
		Name: "verify", Source: job.Source{Table: db + ".t"},
		Dimensions: []job.Dimension{{Name: "k", Expr: "k", Null: job.NullPolicy{Mode: job.NullEmpty}}},
		Metrics:    []job.Metric{{Name: "n", Expr: "count()"}},
		Periods:    []job.Period{"DAY"}, Levels: []job.Level{{Code: "1", Dimensions: []int{0}}},
		Limits:  job.Limits{MaxExecutionTime: time.Minute, MaxMemoryUsage: 2 << 30, MaxBytesBeforeExternalGroupBy: 1 << 30},
		Scatter: job.Scatter{PerNode: 2},
	}
	log := slog.New(slog.DiscardHandler)
	nodes := connect(t, c, j.Limits)
	plan, err := (&scatter.Planner{Job: j, Nodes: nodes, Run: db, Log: log}).Plan(t.Context(), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	k, err := row.ParseType("Nullable(UInt32)")
	if err != nil {
		t.Fatal(err)
	}
	codec, err := rowkey.Compile(rowkey.Config{
		Template: "{k}|{date}", Dims: []rowkey.Dim{{Name: "k", Type: k, Null: job.NullPolicy{Mode: job.NullEmpty}}},
		Levels: j.Levels, Periods: j.Periods,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &verify.Checker{
		Job: j, Nodes: nodes, Run: db, Log: log, Codec: codec,
		Scan: func(_ context.Context, fn func([]byte, []hbase.CellView) error) error {
			for _, k := range keys {
				if err := fn([]byte(k), nil); err != nil {
					return err
				}
			}
			return nil
		},
	}, plan
}

func connect(t *testing.T, c *lab.Cluster, limits job.Limits) []*clickhouse.Node {
	t.Helper()
	src := job.Source{Addresses: c.TCPAddrs(), Cluster: lab.ClusterName, Username: lab.MoverUser, Password: lab.MoverPassword}
	client, err := clickhouse.Open(t.Context(), src, limits, 3, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client.Nodes()
}

func allKeys() []string {
	keys := []string{"|2026-11-29"}
	for i := range groups - 1 {
		keys = append(keys, fmt.Sprintf("%d|2026-11-29", i))
	}
	return keys
}

// A count tells missing and extra rows from the right ones, and what could not
// be counted is not a match.
func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		keys  []string
		want  verify.Verdict
		class failure.Class
	}{
		"all there":        {allKeys(), verify.Match, 0},
		"one missing":      {allKeys()[1:], verify.Mismatch, 0},
		"one extra":        {append(allKeys(), "999|2026-11-29"), verify.Mismatch, 0},
		"nothing there":    {nil, verify.Mismatch, 0},
		"a key of no form": {append(allKeys(), "x|2026-11-29"), verify.NotChecked, failure.Mismatch},
	}
	for version, cluster := range map[string]func(*lab.Lab, testing.TB) *lab.Cluster{
		"26.9": (*lab.Lab).ClickHouse, "18.16": (*lab.Lab).OldClickHouse,
	} {
		for name, tc := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				c := cluster(lab.Shared(t), t)
				checker, plan := newChecker(t, c, slices.Clone(tc.keys))
				counts, err := checker.Groups(t.Context(), plan)
				if err != nil {
					t.Fatal(err)
				}
				if v := counts[0].Verdict(); v != verify.NotChecked {
					t.Errorf("before HBase was counted the verdict is %s", v)
				}
				if want := uint64(2000 * len(c.Nodes)); counts[0].Groups != groups || counts[0].SourceRows != want {
					t.Errorf("ClickHouse has %d groups of %d rows, want %d of %d", counts[0].Groups, counts[0].SourceRows, groups, want)
				}
				err = checker.Keys(t.Context(), plan, counts)
				if failure.ClassOf(err) != tc.class {
					t.Errorf("class %d, error %v", failure.ClassOf(err), err)
				}
				if v := counts[0].Verdict(); v != tc.want {
					t.Errorf("verdict %s, want %s (%+v)", v, tc.want, counts[0])
				}
			})
		}
	}
}

// A count that hits a limit is cut until its parts fit, and each group is counted
// once; where cutting does not help, it ends.
func TestCountsThatHitALimitAreCut(t *testing.T) {
	for version, cluster := range map[string]func(*lab.Lab, testing.TB) *lab.Cluster{
		"26.9": (*lab.Lab).ClickHouse, "18.16": (*lab.Lab).OldClickHouse,
	} {
		t.Run(version, func(t *testing.T) {
			c := cluster(lab.Shared(t), t)
			checker, plan := newChecker(t, c, nil)
			const many = 2_000_000
			if err := c.Nodes[0].Exec(t.Context(), fmt.Sprintf("INSERT INTO %s SELECT 1000 + number FROM (SELECT number FROM system.numbers LIMIT %d)",
				strings.TrimSuffix(checker.Job.Source.Table, "t")+"l", many)); err != nil {
				t.Fatal(err)
			}
			for limit, fits := range map[int64]bool{24_000_000: true, 2_000_000: false} {
				checker.Job.Limits.MaxMemoryUsage = limit
				checker.Nodes = connect(t, c, checker.Job.Limits)
				checker.Run = fmt.Sprintf("verify-%x", time.Now().UnixNano())
				log := new(bytes.Buffer)
				checker.Log = slog.New(slog.NewTextHandler(log, nil))
				counts, err := checker.Groups(t.Context(), plan)
				if !strings.Contains(log.String(), "is cut") {
					t.Errorf("under %d bytes no part was cut", limit)
				}
				switch {
				case fits && (err != nil || counts[0].Groups != groups+many):
					t.Errorf("under %d bytes: %+v, %v", limit, counts, err)
				case !fits && failure.ClassOf(err) != failure.Source:
					t.Errorf("under %d bytes: class %d, %v", limit, failure.ClassOf(err), err)
				}
			}
		})
	}
}
