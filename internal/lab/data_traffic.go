package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// The traffic data set is a pure function of the row number n, counted from 0:
// there is no random generator and no floating point in it, so that every
// server version makes the same rows, and a shard can make its own share.
// h(k) stands for cityHash64(n, k), a different 64-bit number for each column.
//
//	dt            2026-10-01 + h(1) % 60 days: the 60 days up to 2026-11-29
//	shop_id       log-uniform over 1…10⁶: first an octave, o = h(2) % 20, then a
//	              shop of it, 2^o + h(3) % 2^o; the last octave ends at 10⁶.
//	              Shop 1 has 5 % of all rows, shops above 2^19 about one in
//	              ten million each.
//	first_source  one of ten values: app 30 %, search 20 %, mini and feed 10 %,
//	              the other six 5 % each, by h(4)
//	channel       NULL in one row of eight, else one of seven values, by h(5)
//	user_id       1 + h(6) % 2,000,000
//	pv            1 to 10: 1 + (h(7) % 4) × (h(7) / 4 % 4)
//	amount        -50.00 to 9,949.99 in steps of 0.01, by h(8)
//	discount      NULL in 70 % of the rows, else 0.00 to 49.99, by h(9)
const (
	trafficColumns = `dt Date, shop_id UInt64, first_source String, channel Nullable(String), user_id UInt64, pv UInt32,
amount Decimal(18, 2), discount Nullable(Decimal(18, 2))`

	trafficShop = `(bitShiftLeft(toUInt64(1), cityHash64(n, 2) % 20) + cityHash64(n, 3) %
if(cityHash64(n, 2) % 20 = 19, toUInt64(475713), bitShiftLeft(toUInt64(1), cityHash64(n, 2) % 20)))`

	trafficRow = `toDate('2026-10-01') + toUInt16(cityHash64(n, 1) % 60) AS dt,
` + trafficShop + ` AS shop_id,
arrayElement(['app','app','app','app','app','app','search','search','search','search','mini','mini','feed','feed',
'ads','live','share','pc','scan','other'], cityHash64(n, 4) % 20 + 1) AS first_source,
if(cityHash64(n, 5) % 8 = 0, NULL, arrayElement(['c1','c2','c3','c4','c5','c6','c7'], cityHash64(n, 5) % 8)) AS channel,
1 + cityHash64(n, 6) % 2000000 AS user_id,
toUInt32(1 + cityHash64(n, 7) % 4 * (intDiv(cityHash64(n, 7), 4) % 4)) AS pv,
toDecimal64(toInt64(cityHash64(n, 8) % 1000000) - 5000, 2) / 100 AS amount,
if(cityHash64(n, 9) % 10 < 7, NULL, toDecimal64(intDiv(cityHash64(n, 9), 10) % 5000, 2) / 100) AS discount`
)

// The ways to place the traffic rows on the shards.
const (
	ShardByRand = "rand"    // row n lies on shard n % shards; the key says rand()
	ShardByShop = "shop_id" // by cityHash64(shop_id), so that a shop is on one shard
)

// TrafficOptions choose size and layout of the traffic data set.
type TrafficOptions struct {
	// Rows is the size of the whole data set. Required.
	Rows int64
	// ShardBy is ShardByRand (the default) or ShardByShop. The rows are the
	// same.
	ShardBy string
	// OrderBy is the local sorting key, "shop_id, dt" by default.
	OrderBy string
	// PartitionBy is the local partition key, "toYYYYMM(dt)" by default.
	PartitionBy string
}

// LoadTraffic generates visits and orders of shops into `traffic_local` on
// every node of the cluster and a Distributed table `traffic` over them, in the
// given database, which it creates when missing. The same Rows give the same
// rows on every server version, at any time. It does nothing when the tables
// hold the same data in the same layout already.
func LoadTraffic(ctx context.Context, c *Cluster, database string, o TrafficOptions) error {
	o.ShardBy = cmp.Or(o.ShardBy, ShardByRand)
	o.OrderBy = cmp.Or(o.OrderBy, "shop_id, dt")
	o.PartitionBy = cmp.Or(o.PartitionBy, "toYYYYMM(dt)")
	if o.Rows < 1 {
		return errors.New("load traffic: Rows must be positive")
	}
	d := dataset{database: database, name: "traffic", columns: trafficColumns, partitionBy: o.PartitionBy, orderBy: o.OrderBy,
		id: fmt.Sprintf("v1 %+v", o)}
	switch o.ShardBy {
	case ShardByRand:
		d.shardingKey = "rand()"
	case ShardByShop:
		d.shardingKey = "cityHash64(shop_id)"
	default:
		return fmt.Errorf("load traffic: ShardBy is %q, want %q or %q", o.ShardBy, ShardByRand, ShardByShop)
	}
	d.insert = func(ctx context.Context, n *Node) error {
		return n.Exec(ctx, "INSERT INTO "+d.table("_local")+" "+o.share(int64(n.Shard-1), int64(c.Shards())))
	}
	return c.load(ctx, d)
}

// share is the SELECT that makes the rows of one shard, counted from 0.
func (o TrafficOptions) share(shard, shards int64) string {
	if o.ShardBy == ShardByShop {
		numbers := fmt.Sprintf("(SELECT number AS n FROM numbers(%d))", o.Rows)
		return fmt.Sprintf("SELECT %s FROM %s WHERE cityHash64(%s) %% %d = %d",
			oneLine(trafficRow), numbers, oneLine(trafficShop), shards, shard)
	}
	rows := (o.Rows - shard + shards - 1) / shards
	numbers := fmt.Sprintf("(SELECT number * %d + %d AS n FROM numbers(%d))", shards, shard, rows)
	return "SELECT " + oneLine(trafficRow) + " FROM " + numbers
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
