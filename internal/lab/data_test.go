package lab

import (
	"strings"
	"testing"
	"time"
)

// trafficChecksum covers every column of every row, whatever the order. The
// decimals as integers: the versions print them differently.
const trafficChecksum = `SELECT count(), sum(cityHash64(toString(dt), shop_id, first_source, ifNull(channel, '-'), user_id, pv,
toInt64(amount * 100), ifNull(toInt64(discount * 100), -1))), countIf(isNull(channel)), countIf(isNull(discount)), min(dt), max(dt),
min(shop_id), max(shop_id), uniqExact(first_source), toInt64(sum(amount)) FROM `

func TestTrafficIsTheSameOnBothVersions(t *testing.T) {
	const rows = 200_000
	db := testDatabase(t)
	want := ""
	for _, c := range []*Cluster{Shared(t).ClickHouse(t), Shared(t).OldClickHouse(t)} {
		for _, by := range []string{ShardByRand, ShardByShop} {
			begin := time.Now()
			if err := LoadTraffic(t.Context(), c, db, TrafficOptions{Rows: rows, ShardBy: by}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %v", c.Version, by, time.Since(begin))
			got := query(t, c.Nodes[1], trafficChecksum+db+".traffic")
			t.Logf("%s %s: %s", c.Version, by, got)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s sharded by %s:\n got %s\nwant %s", c.Version, by, got, want)
			}
		}
		dropDatabase(t, c, db)
	}
}

func TestFlights(t *testing.T) {
	db := testDatabase(t)
	for _, c := range []*Cluster{Shared(t).ClickHouse(t), Shared(t).OldClickHouse(t)} {
		begin := time.Now()
		if err := LoadFlights(t.Context(), c, db); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %v", c.Version, time.Since(begin))
		got := query(t, c.Nodes[2], "SELECT count(), countIf(isNull(tailnum)), countIf(isNull(dep_time)), min(arr_delay), min(dt), max(dt), "+
			"uniqExact(tailnum), sum(distance), uniqExact(time_hour) FROM "+db+".flights")
		want := "336776\t2512\t8255\t-86\t2013-01-01\t2013-12-31\t4043\t350217607\t6936"
		if got != want {
			t.Errorf("%s: got %s, want %s", c.Version, got, want)
		}
		dropDatabase(t, c, db)
	}
}

func testDatabase(t *testing.T) string {
	return "lab_" + strings.ToLower(strings.NewReplacer("/", "_", "-", "_").Replace(t.Name()))
}

func query(t *testing.T, n *Node, sql string) string {
	t.Helper()
	out, err := n.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(out, "\n")
}

func dropDatabase(t *testing.T, c *Cluster, db string) {
	t.Helper()
	if err := c.ExecAll(t.Context(), "DROP DATABASE IF EXISTS "+db); err != nil {
		t.Error(err)
	}
}
