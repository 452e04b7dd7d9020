package clickhouse_test

import (
	"fmt"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// What an administrator put into a user's profile must not turn an answer into
// a part of it, or into more than it.
func TestProfileCannotChangeResults(t *testing.T) {
	const groups = "SELECT toString(number % 1000) AS k, count() FROM (SELECT number FROM system.numbers LIMIT 100000) GROUP BY k"
	profiles := map[string]string{
		"extremes":  "<extremes>1</extremes>",
		"any":       "<max_rows_to_group_by>10</max_rows_to_group_by><group_by_overflow_mode>any</group_by_overflow_mode>",
		"resultmax": "<max_result_rows>5</max_result_rows>",
		"resultcut": "<max_result_rows>5</max_result_rows><result_overflow_mode>break</result_overflow_mode>",
		"timebreak": "<max_execution_time>1</max_execution_time><timeout_overflow_mode>break</timeout_overflow_mode>",
		"unsharded": "<skip_unavailable_shards>1</skip_unavailable_shards>",
		"nulls":     "<join_use_nulls>1</join_use_nulls>",
	}
	var all string
	for user, settings := range profiles {
		if user != "resultmax" { // which is in resultcut
			all += settings
		}
	}
	profiles["everything"] = all
	eachVersion(t, lab.ClickHouseOptions{UsersXML: []string{usersXML(profiles)}}, func(t *testing.T, c *target) {
		for user := range profiles {
			t.Run(user, func(t *testing.T) {
				n := open(t, as(source(c), user), limits).Nodes()[0]
				if _, rows := read(t, n, groups, false); rows != 1000 {
					t.Errorf("%d groups arrived, want 1000", rows)
				}
			})
		}
		as := func(t *testing.T, user string) *clickhouse.Node {
			t.Helper()
			return open(t, as(source(c), user), limits).Nodes()[0]
		}
		t.Run("time", func(t *testing.T) {
			// Longer than the profile's second, which would cut it short.
			const most = 50_000_000
			sql := fmt.Sprintf("SELECT count() FROM (SELECT sipHash64(sipHash64(number)) AS h FROM (SELECT number FROM system.numbers LIMIT %d)) WHERE h != 1", most)
			var rows uint64
			if err := as(t, "timebreak").Row(t.Context(), clickhouse.Query{ID: queryID(t), SQL: sql}, &rows); err != nil || rows < most-10 {
				t.Errorf("%d rows, want %d: %v", rows, most, err)
			}
		})
		t.Run("shard away", func(t *testing.T) {
			sql := "SELECT count() FROM remote('" + c.Nodes[0].TCPAddr() + ",127.0.0.1:1', system, one)"
			var rows uint64
			err := as(t, "unsharded").Row(t.Context(), clickhouse.Query{ID: queryID(t), SQL: sql}, &rows)
			if clickhouse.KindOf(err) != clickhouse.KindElsewhere || !failure.IsTransient(err) {
				t.Errorf("%d rows, %v", rows, err)
			}
		})
		t.Run("join", func(t *testing.T) {
			b, _ := read(t, as(t, "nulls"), "SELECT y FROM (SELECT toUInt8(1) AS x) AS l ANY LEFT JOIN (SELECT toUInt8(2) AS x, toUInt8(7) AS y) AS r USING (x)", false)
			if want := (row.Value{Kind: row.UInt}); b.Values[0] != want {
				t.Errorf("%+v, want %+v", b.Values[0], want)
			}
		})
	})
}
