package mover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// placedTable is as statesTable, with each value of k on one shard, found by
// the primary key.
func placedTable(t *testing.T, c *lab.Cluster, rows, heavy int) string {
	t.Helper()
	db := unique(t, "placed")
	exec := func(sql string) {
		if err := c.ExecAll(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE " + db)
	t.Cleanup(func() { _ = c.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE "+db) })
	exec("CREATE TABLE " + db + ".l (dt Date, k String, s UInt8, u UInt64) ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 512")
	exec("CREATE TABLE " + db + ".t AS " + db + ".l ENGINE = Distributed(" + lab.ClusterName + ", " + db + ", l, cityHash64(k))")
	for i, n := range c.Nodes {
		sql := fmt.Sprintf(`INSERT INTO %s.l SELECT * FROM (SELECT toDate('2026-11-29'), if(sipHash64(n) %% 100 < %d, 'heavy', concat('k', toString(sipHash64(n, 1) %% 400))) AS k, sipHash64(n, 2) %% 10, sipHash64(n, 3)
			FROM (SELECT number AS n FROM system.numbers LIMIT %d)) WHERE cityHash64(k) %% %d = %d`, db, heavy, rows, len(c.Nodes), i)
		if err := n.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return db + ".t"
}

// TestP1ExactByEveryStrategy: the table in HBase is the same however the slices
// are cut, and cut again where they hit a limit.
func TestP1ExactByEveryStrategy(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := placedTable(t, c, 600_000, 60)
		truth, limit := statesTruth(t, c, table), tightLimit(t, c, table)
		for strategy, limit := range map[string]int{"local": limit, "range": limit, "values": limit, "hash": limit} {
			t.Run(strategy, func(t *testing.T) {
				j := load(t, c, "testdata/states.yaml", "source.table="+table, "scatter.strategy="+strategy, "scatter.slices=5")
				if _, err := run(t, j, "2026-11-29"); err != nil {
					t.Fatal(err)
				}
				equal(t, truth, tableOf(t, j))
			})
			t.Run(strategy+" over the limit", func(t *testing.T) {
				result, j := cutRun(t, c, limit, "source.table="+table, "scatter.strategy="+strategy)
				if result.Units[0].Splits == 0 && strategy != "local" { // a shard has less to do
					t.Errorf("no slice was cut under a limit of %d bytes", limit)
				}
				equal(t, truth, tableOf(t, j))
			})
		}
	})
}

// rawJob writes the job file with a query of its own.
func rawJob(t *testing.T, query string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/states.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "raw.yaml")
	if err := os.WriteFile(path, append(text, "sql: "+strconv.Quote(query)+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The job's own query is cut into slices as the mover's is, by the dimensions'
// values, and joins other tables.
func TestTheJobsOwnQuery(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := placedTable(t, c, 100_000, 10)
		path := rawJob(t, "SELECT k, s, uniqExact(u) AS users, count() AS c FROM "+table+
			" ANY LEFT JOIN (SELECT toUInt8(number) AS s, number * 2 AS twice FROM numbers(10)) AS j USING s WHERE dt BETWEEN {start} AND {end} AND twice >= 0 AND {slice} GROUP BY k, s")
		truth := statesTruth(t, c, table)
		metrics := []string{"metrics.u=users", "metrics.n=c", "source.table=" + table, "scatter.slices=4"}
		for _, strategy := range []string{"range", "values", "hash"} {
			t.Run(strategy, func(t *testing.T) {
				j := load(t, c, path, append(metrics, "scatter.strategy="+strategy)...)
				result, err := run(t, j, "2026-11-29")
				if err != nil {
					t.Fatal(err)
				}
				equal(t, truth, tableOf(t, j))
				if u := result.Units[0]; u.SourceChanged || !u.Verified {
					t.Errorf("the report says %+v", u)
				}
			})
		}
		t.Run("local", func(t *testing.T) {
			j := load(t, c, path, append(metrics, "scatter.strategy=local")...)
			if _, err := run(t, j, "2026-11-29"); failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), "query of its own") {
				t.Errorf("class %d, %v", failure.ClassOf(err), err)
			}
		})
		t.Run("a column that is not there", func(t *testing.T) {
			j := load(t, c, path, "metrics.u=nothing", "metrics.n=c", "source.table="+table)
			if _, err := run(t, j, "2026-11-29"); failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), "metrics.u") {
				t.Errorf("class %d, %v", failure.ClassOf(err), err)
			}
		})
	})
}

// TestP3RowsOnTwoShards: what the sample of the placement did not see is found
// by the count, the remedy is the right one, and two of the rows are shown.
func TestP3RowsOnTwoShards(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := placedTable(t, c, 30_000, 0)
		if err := c.ExecAll(t.Context(), "INSERT INTO "+strings.TrimSuffix(table, "t")+"l SELECT toDate('2026-11-29'), 'k7', 1, 1"); err != nil {
			t.Fatal(err)
		}
		j := load(t, c, "testdata/states.yaml", "source.table="+table, "scatter.strategy=local")
		dropAfter(t, j)
		m := newMover(t, j, "2026-11-29")
		m.TrustPlacement = true
		_, err := m.Run(t.Context())
		if failure.ClassOf(err) != failure.Mismatch || !strings.Contains(err.Error(), "groups came from two shards") || !strings.Contains(failure.Remedy(err), "scatter.strategy: hash") {
			t.Errorf("class %d, %v, %s", failure.ClassOf(err), err, failure.Remedy(err))
		}
		// Each shard has a row for k7 of its own.
		if text := fmt.Sprint(err); strings.Count(text, `{"k":"k7",`) != 2 || !strings.Contains(text, "two rows have the key") {
			t.Errorf("the rows are not shown: %v", err)
		}
	})
}
