package scatter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// trafficJob groups the traffic of a month by shop and source.
func trafficJob(table string) *job.Job {
	j := newJob(table, 0, "shop_id", "first_source")
	j.Source.Where = "dt BETWEEN {start} AND {end}"
	j.Metrics = []job.Metric{{Name: "pv", Expr: "sum(pv)"}, {Name: "uv", Expr: "uniqExact(user_id)"}}
	j.Periods = []job.Period{"BY_LAST_DAYS_30"}
	return j
}

func choice(up *scatter.UnitPlan, s scatter.Strategy) scatter.Choice {
	i := slices.IndexFunc(up.Choices, func(c scatter.Choice) bool { return c.Strategy == s })
	return up.Choices[i]
}

// The cheapest strategy is taken: local where the table is placed by a key of
// the groups, range where the primary key finds a slice's rows, else hash.
func TestTheLayoutDecides(t *testing.T) {
	layouts := map[string]struct {
		o    lab.TrafficOptions
		want scatter.Strategy
	}{
		"sharded by shop":        {lab.TrafficOptions{ShardBy: lab.ShardByShop, OrderBy: "dt"}, scatter.StrategyLocal},
		"sorted by shop":         {lab.TrafficOptions{}, scatter.StrategyRange},
		"neither":                {lab.TrafficOptions{OrderBy: "dt"}, scatter.StrategyHash},
		"sorted by day and shop": {lab.TrafficOptions{OrderBy: "dt, shop_id"}, scatter.StrategyHash},
	}
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		connected := nodes(t, c, newJob("", 0).Limits)
		for name, tc := range layouts {
			t.Run(name, func(t *testing.T) {
				db := database(t, c)
				tc.o.Rows = 1_500_000
				if err := lab.LoadTraffic(t.Context(), c, db, tc.o); err != nil {
					t.Fatal(err)
				}
				j := trafficJob(db + ".traffic")
				up, err := plan(t, connected, j)
				if err != nil {
					t.Fatal(err)
				}
				if up.Strategy != tc.want || len(up.Slices) != len(c.Nodes) || !choice(up, tc.want).Chosen {
					t.Errorf("%s with %d slices, want %s with %d: %+v", up.Strategy, len(up.Slices), tc.want, len(c.Nodes), up.Choices)
				}
				if hash, best := choice(up, scatter.StrategyHash), choice(up, tc.want); best.Rows > hash.Rows || tc.want != scatter.StrategyHash && best.Rows > hash.Rows/2 {
					t.Errorf("%s reads %d rows, hash %d", tc.want, best.Rows, hash.Rows)
				}
				j.Scatter = job.Scatter{Slices: 12, PerNode: 1, Strategy: string(tc.want)}
				if up, err = plan(t, connected, j); err != nil {
					t.Fatal(err)
				}
				// What a slice costs: its rows, and its groups, which take as long as four rows.
				var costs []uint64
				for _, slice := range up.Slices {
					n := c.Nodes[max(1, slice.Shard)-1]
					groups := sums(t, n, "SELECT count(), 0, 0 FROM ("+slice.SQL+")")[0]
					costs = append(costs, slice.Rows+4*groups)
				}
				slices.Sort(costs)
				if heaviest, median := costs[len(costs)-1], costs[len(costs)/2]; heaviest > 2*median {
					t.Errorf("the heaviest slice costs %d, the median %d", heaviest, median)
				}
			})
		}
	})
}

// A row on another shard than the sharding key says is found, and the groups
// are not taken from each shard alone, unless the user insists.
func TestPlacementIsVerified(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := database(t, c) + ".t"
		loadTyped(t, c, table, typeCase{expr: "r % 1000"}, 7)
		connected := nodes(t, c, newJob("", 0).Limits)
		j := newJob(table, 0, "x")
		up, err := plan(t, connected, j)
		if err != nil || up.Strategy != scatter.StrategyLocal || !strings.Contains(choice(up, scatter.StrategyLocal).Reason, "none of") {
			t.Fatalf("%v, %+v", err, up)
		}
		// Every node now has a row of every value.
		exec(t, c, "INSERT INTO "+table+"_l SELECT number, 1 FROM (SELECT number FROM system.numbers LIMIT 1000)")
		if up, err = plan(t, connected, j); err != nil || up.Strategy == scatter.StrategyLocal || !strings.Contains(choice(up, scatter.StrategyLocal).Reason, "lies on shards 1 and 2") {
			t.Errorf("%v, %+v", err, up)
		}
		checkSlices(t, c, connected, j)
		p := newPlanner(connected, j)
		p.TrustPlacement = true
		trusted, err := p.Plan(t.Context(), date)
		if err != nil || trusted.Units[0].Strategy != scatter.StrategyLocal {
			t.Errorf("trusted: %v, %+v", err, trusted)
		}
		j.Scatter.Strategy = "local"
		if _, err := plan(t, connected, j); failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), "scatter.strategy") {
			t.Errorf("forced: class %d, %v", failure.ClassOf(err), err)
		}
	})
}

// Groups are taken from each shard alone only if their keys decide the shard.
func TestLocalNeedsAKeyOfTheGroups(t *testing.T) {
	cases := map[string]struct {
		key  string
		dims []string
		want scatter.Strategy
	}{
		"a dimension":              {"a", []string{"a", "b"}, scatter.StrategyLocal},
		"a function of dimensions": {"cityHash64(a, b) % 8", []string{"b", "a"}, scatter.StrategyLocal},
		"more than the dimensions": {"cityHash64(a, b)", []string{"a"}, scatter.StrategyHash},
		"nothing of them":          {"b", []string{"a"}, scatter.StrategyHash},
		"chance":                   {"rand()", []string{"a", "b"}, scatter.StrategyHash},
		"chance and a dimension":   {"a + rand()", []string{"a", "b"}, scatter.StrategyHash},
		"an expression of it":      {"a", []string{"intDiv(a, 2)"}, scatter.StrategyHash},
		"the expression itself":    {"intDiv(a, 2)", []string{"intDiv(a,2)"}, scatter.StrategyLocal},
		"none":                     {"", []string{"a"}, scatter.StrategyHash},
	}
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		connected := nodes(t, c, newJob("", 0).Limits)
		exec(t, c, "CREATE TABLE "+db+".l (a UInt64, b UInt64, v UInt64) ENGINE = MergeTree ORDER BY v")
		for i, n := range c.Nodes { // placed so that any of the keys may be true
			sql := fmt.Sprintf("INSERT INTO %s.l SELECT number * 6 + %d, number * 6 + %d, 1 FROM (SELECT number FROM system.numbers LIMIT 500)", db, 2*i, 2*i)
			if err := n.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		i := 0
		for name, tc := range cases {
			i++
			table := fmt.Sprintf("%s.t%d", db, i)
			key := tc.key
			if key != "" {
				key = ", " + key
			}
			exec(t, c, "CREATE TABLE "+table+" AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l"+key+")")
			t.Run(name, func(t *testing.T) {
				up, err := plan(t, connected, newJob(table, 0, tc.dims...))
				if err != nil || up.Strategy != tc.want {
					t.Errorf("%v, %+v", err, up)
				}
			})
		}
	})
}

// The limits decide how many slices there are.
func TestLimitsDemandSlices(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY v")
		exec(t, c, "CREATE TABLE "+db+".t AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l, rand())")
		exec(t, c, "INSERT INTO "+db+".l SELECT number, number FROM (SELECT number FROM system.numbers LIMIT 200000)")
		j := newJob(db+".t", 0, "k")
		connected := nodes(t, c, j.Limits)
		j.Limits.MaxMemoryUsage = 2_000_000 // 200,000 groups of about 64 + 24 bytes, in slices of half of it
		up, err := plan(t, connected, j)
		if err != nil || len(up.Slices) < 16 || len(up.Slices) > 20 || !strings.Contains(up.Count, "max_memory_usage") {
			t.Errorf("%v, %d slices: %s", err, len(up.Slices), up.Count)
		}
		checkSlices(t, c, connected, j)
	})
}

// A dimension with fewer values than there are nodes is refused if it is named,
// and joined by others if not.
func TestFewValues(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := database(t, c) + ".t"
		loadTyped(t, c, table, typeCase{expr: "r % 1000"}, 3)
		connected := nodes(t, c, newJob("", 0).Limits)
		j := newJob(table, 0, "x % 2", "intDiv(x, 2) % 2")
		if up := checkSlices(t, c, connected, j); !strings.Contains(up.Dimension, ", ") || len(up.Slices) != len(c.Nodes) {
			t.Errorf("cut by %s into %d slices", up.Dimension, len(up.Slices))
		}
		j.Scatter.Dimension = "d0"
		if _, err := plan(t, connected, j); failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), "2 values for 3 nodes") {
			t.Errorf("class %d, %v", failure.ClassOf(err), err)
		}
	})
}

// Of a large source the values are counted in a sample: fewer days, or rows.
func TestLargeSourcesAreSampled(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (dt Date, small UInt8, k UInt32, v UInt8) ENGINE = MergeTree PARTITION BY dt ORDER BY tuple()")
		exec(t, c, "CREATE TABLE "+db+".t AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l, rand())")
		exec(t, c, `INSERT INTO `+db+`.l SELECT toDate('2026-11-29') - toUInt16(number % 7), number % 5, sipHash64(number) % 50000, 1
			FROM (SELECT number FROM system.numbers LIMIT 4500000)`)
		connected := nodes(t, c, newJob("", 0).Limits)
		for name, where := range map[string]string{"days": "dt BETWEEN {start} AND {end}", "rows": "dt > toDate('2020-01-01')"} {
			t.Run(name, func(t *testing.T) {
				j := newJob(db+".t", 0, "small", "k")
				j.Source.Where, j.Periods = where, []job.Period{"BY_LAST_DAYS_7"}
				up, err := plan(t, connected, j)
				if err != nil {
					t.Fatal(err)
				}
				if up.Rows != 13_500_000 || up.Sampled == 0 || up.Sampled > 13_000_000 || up.Dimension != "d1" {
					t.Errorf("%d rows, %d of them in the sample, cut by %s", up.Rows, up.Sampled, up.Dimension)
				}
				if n := up.Cardinality["d1"]; n < 40_000 || n > 60_000 {
					t.Errorf("k has about %d values, want 50,000", n)
				}
			})
		}
	})
}

// A plan is a value: what was stored can be run later, and only as long as it is
// what the job asks.
func TestAStoredPlanCanBeRun(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := database(t, c) + ".t"
		loadTyped(t, c, table, typeCase{expr: "concat('v', toString(r % 1000))", ranges: true}, 5)
		connected := nodes(t, c, newJob("", 0).Limits)
		for _, strategy := range []string{"local", "range", "values", "hash"} {
			t.Run(strategy, func(t *testing.T) {
				j := newJob(table, 5, "x", "cityHash64(x) % 3")
				j.Scatter.Strategy = strategy
				made, err := newPlanner(connected, j).Plan(t.Context(), date)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(made)
				if err != nil {
					t.Fatal(err)
				}
				var stored scatter.Plan
				if err := json.Unmarshal(text, &stored); err != nil {
					t.Fatal(err)
				}
				if err := newPlanner(connected, j).Adopt(t.Context(), &stored); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(made.Tasks(), stored.Tasks(), cmpopts.IgnoreUnexported(scatter.Task[scatter.Piece]{}, scatter.Slice{}), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("other tasks: %s", diff)
				}
				j.Metrics[0].Expr = "sum(v + 1)"
				if err := newPlanner(connected, j).Adopt(t.Context(), &stored); failure.ClassOf(err) != failure.Preflight {
					t.Errorf("the plan of another job: %v", err)
				}
			})
		}
	})
}

// Where the limits ask for more than one slice a shard, the shard's primary key
// is used: each row is read about once.
func TestLocalSlicesAreRangesWhereTheTableIsSorted(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		connected := nodes(t, c, newJob("", 0).Limits)
		for order, once := range map[string]bool{"shop_id": true, "dt": false} {
			t.Run(order, func(t *testing.T) {
				db := database(t, c)
				if err := lab.LoadTraffic(t.Context(), c, db, lab.TrafficOptions{Rows: 600_000, ShardBy: lab.ShardByShop, OrderBy: order}); err != nil {
					t.Fatal(err)
				}
				j := trafficJob(db + ".traffic")
				j.Scatter.Slices = 12
				up, err := plan(t, connected, j)
				if err != nil {
					t.Fatal(err)
				}
				read := choice(up, scatter.StrategyLocal).Rows
				if up.Strategy != scatter.StrategyLocal || len(up.Slices) != 12 || (read < 2*up.Scan) != once {
					t.Errorf("%s, %d slices read %d rows, one query %d", up.Strategy, len(up.Slices), read, up.Scan)
				}
			})
		}
	})
}

// A dimension that has one value in the period finds nothing, however early it
// is in the sorting key: the next one does.
func TestRangesSkipADimensionOfOneValue(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (dt Date, k UInt32, v UInt8) ENGINE = MergeTree ORDER BY (dt, k)")
		exec(t, c, "CREATE TABLE "+db+".t AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l, rand())")
		exec(t, c, "INSERT INTO "+db+".l SELECT toDate('2026-11-29'), number % 3000, 1 FROM (SELECT number FROM system.numbers LIMIT 600000)")
		j := newJob(db+".t", 0, "dt", "k")
		up, err := plan(t, nodes(t, c, j.Limits), j)
		if err != nil || up.Strategy != scatter.StrategyRange || up.Dimension != "d1" || !strings.Contains(up.Reason, "sorting") {
			t.Errorf("%v, %+v", err, up)
		}
	})
}

// Local tables do not stand for the source table where they would compute
// something else, on any shard.
func TestLocalNeedsTheSourcesColumns(t *testing.T) {
	cases := map[string]struct {
		source, local, second string // columns of the second shard's, if they differ
		why                   string // empty if local is taken
	}{
		"the same alias":             {source: "k UInt64, v UInt64, w UInt64 ALIAS v * 2", local: "k UInt64, v UInt64, w UInt64 ALIAS v * 2"},
		"another alias":              {source: "k UInt64, v UInt64, w UInt64 ALIAS v * 2", local: "k UInt64, v UInt64, w UInt64 ALIAS v * 3", why: "column w is an ALIAS"},
		"an alias over a column":     {source: "k UInt64, v UInt64, w UInt64 ALIAS v * 2", local: "k UInt64, v UInt64, w UInt64", why: "column w is an ALIAS"},
		"another alias on one shard": {source: "k UInt64, v UInt64, w UInt64 ALIAS v * 2", local: "k UInt64, v UInt64, w UInt64 ALIAS v * 2", second: "k UInt64, v UInt64, w UInt64 ALIAS v * 3", why: "column w is an ALIAS"},
		"another type on one shard":  {source: "k UInt64, v UInt64, w UInt64", local: "k UInt64, v UInt64, w UInt64", second: "k UInt64, v UInt64, w Float64", why: "is Float64"},
	}
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				db := database(t, c)
				for i, n := range c.Nodes {
					columns := tc.local
					if i == 1 && tc.second != "" {
						columns = tc.second
					}
					for _, sql := range []string{
						"CREATE TABLE " + db + ".l (" + columns + ") ENGINE = MergeTree ORDER BY tuple()",
						fmt.Sprintf("INSERT INTO %s.l (k, v) SELECT number * 3 + %d, 1 FROM (SELECT number FROM system.numbers LIMIT 500)", db, i),
					} {
						if err := n.Exec(t.Context(), sql); err != nil {
							t.Fatal(err)
						}
					}
				}
				exec(t, c, "CREATE TABLE "+db+".t ("+tc.source+") ENGINE = Distributed("+lab.ClusterName+", "+db+", l, k)")
				j := newJob(db+".t", 0, "k")
				j.Metrics = []job.Metric{{Name: "w", Expr: "sum(w)"}}
				up, err := plan(t, nodes(t, c, j.Limits), j)
				if err != nil {
					t.Fatal(err)
				}
				local := choice(up, scatter.StrategyLocal)
				if local.Chosen != (tc.why == "") || !strings.Contains(local.Reason, tc.why) {
					t.Errorf("%+v", local)
				}
			})
		}
	})
}

// Dimensions that go together have far fewer tuples of values than there
// could be; enough of them are looked for all the same.
func TestPlacementOfTuplesIsVerified(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db := database(t, c)
		exec(t, c, "CREATE TABLE "+db+".l (a UInt64, b UInt64, c UInt64, v UInt64) ENGINE = MergeTree ORDER BY tuple()")
		exec(t, c, "CREATE TABLE "+db+".t AS "+db+".l ENGINE = Distributed("+lab.ClusterName+", "+db+", l, cityHash64(a, b, c))")
		// Every node has a row of every tuple.
		exec(t, c, "INSERT INTO "+db+".l SELECT number, number + 1, number + 2, 1 FROM (SELECT number FROM system.numbers LIMIT 50000)")
		j := newJob(db+".t", 0, "a", "b", "c")
		up, err := plan(t, nodes(t, c, j.Limits), j)
		if err != nil || up.Strategy == scatter.StrategyLocal || !strings.Contains(choice(up, scatter.StrategyLocal).Reason, "lies on shards 1 and 2") {
			t.Errorf("%v, %+v", err, up)
		}
	})
}

// Under limits that the planner's own questions hit there is a plan all the same.
func TestPlansUnderTightLimits(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := database(t, c) + ".t"
		loadTyped(t, c, table, typeCase{expr: "r"}, 9)
		exec(t, c, "INSERT INTO "+table+"_l SELECT cityHash64(number), 1 FROM (SELECT number FROM system.numbers LIMIT 400000)")
		j := newJob(table, 0, "x", "toString(x)")
		j.Limits = job.Limits{MaxExecutionTime: time.Minute, MaxMemoryUsage: 6_000_000, MaxBytesBeforeExternalGroupBy: 3_000_000}
		if c.Old {
			j.Limits.MaxMemoryUsage *= 2 // a header takes more than 6 MB there
		}
		connected := nodes(t, c, j.Limits)
		if up := checkSlices(t, c, connected, j); len(up.Slices) < 2 {
			t.Errorf("%d slices", len(up.Slices))
		}
	})
}
