package mover

import (
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
)

// TestReadsLocal: a query of the job's own that reads the table behind the
// Distributed one is found, however it is spelled, and others are not.
func TestReadsLocal(t *testing.T) {
	d := clickhouse.Distributed{Cluster: "c3", Database: "ods", Table: "t_local"}
	for sql, want := range map[string]string{
		"": "",
		"SELECT a, count() FROM ods.t WHERE {slice} GROUP BY a":               "",
		"SELECT a, count() FROM ods.t_local_2 WHERE {slice} GROUP BY a":       "",
		"SELECT a, count() FROM other.t_local WHERE {slice} GROUP BY a":       "",
		"SELECT a, count() AS t_local FROM ods.t WHERE {slice} GROUP BY a":    "",
		"SELECT a, count() FROM ods.t_local WHERE {slice} GROUP BY a":         "ods.t_local",
		"select a, count() from\n `ods` . `t_local` where {slice} group by a": "`ods` . `t_local`",
		"SELECT a, count() FROM ods.t AS x JOIN t_local ON 1 = 1 GROUP BY a":  "t_local",
		"SELECT a, sum(n) FROM (SELECT a, 1 AS n FROM t_local) GROUP BY a":    "t_local",
		"SELECT a, count() FROM \"ods\".\"t_local\" WHERE {slice} GROUP BY a": `"ods"."t_local"`,
	} {
		if got := readsLocal(sql, d); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}
