package mover_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// aliasTables makes a Distributed table with a column w on each node, by the
// given expression, over local tables of which each has its own idea of w.
func aliasTables(t *testing.T, c *lab.Cluster, alias func(node int) string) string {
	t.Helper()
	table := placedTable(t, c, 3000, 0)
	db := strings.TrimSuffix(table, ".t")
	for i, n := range c.Nodes {
		for _, sql := range []string{
			"CREATE TABLE " + db + ".l2 (dt Date, k String, s UInt8, u UInt64, w UInt64 ALIAS toUInt64(s) * 3) ENGINE = MergeTree ORDER BY dt",
			"INSERT INTO " + db + ".l2 (dt, k, s, u) SELECT dt, k, s, u FROM " + db + ".l",
			fmt.Sprintf("CREATE TABLE %s.t2 (dt Date, k String, s UInt8, u UInt64, w UInt64 ALIAS %s) ENGINE = Distributed(%s, %s, l2, cityHash64(k))", db, alias(i), lab.ClusterName, db),
		} {
			if err := n.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	return db + ".t2"
}

// TestP1ExactWithAnAliasOverTheShards: the source table computes a column by its
// own expression, which counts, not that of the tables behind it.
func TestP1ExactWithAnAliasOverTheShards(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := aliasTables(t, c, func(int) string { return "toUInt64(s) * 100" })
		truth := map[string]map[string]string{}
		for _, r := range ask(t, c, "SELECT k, s, sum(w), count() FROM "+table+" GROUP BY k, s") {
			truth[r[0]+"|"+r[1]+"|2026-11-29"] = map[string]string{"u": long(t, r[2]), "n": long(t, r[3])}
		}
		j := load(t, c, "testdata/states.yaml", "source.table="+table, "metrics.u=sum(w)")
		if _, err := run(t, j, "2026-11-29"); err != nil {
			t.Fatal(err)
		}
		equal(t, truth, tableOf(t, j))
	})
}

// A source table that is not the same on each node would give each slice another
// answer; no count can tell.
func TestATableThatDiffersBetweenNodes(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := aliasTables(t, c, func(node int) string { return fmt.Sprintf("toUInt64(s) * %d", 100+node) })
		j := load(t, c, "testdata/states.yaml", "source.table="+table, "metrics.u=sum(w)")
		_, err := run(t, j, "2026-11-29")
		if failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), "other columns") || !strings.Contains(err.Error(), "* 101") {
			t.Errorf("class %d, %v", failure.ClassOf(err), err)
		}
	})
}
