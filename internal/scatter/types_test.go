package scatter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// A typeCase is a type that can be grouped by, with an expression for its
// values over r, a random UInt64.
type typeCase struct {
	name, expr string
	typ        string // of the column; what the expression gives, if empty
	// ranges and lists say which of the strategies the type has besides hash and local.
	ranges, lists bool
	// since is the version that brought the type, 0 for all.
	modern bool
}

func typeCases() []typeCase {
	return []typeCase{
		{name: "UInt8", expr: "toUInt8(r)", ranges: true, lists: true},
		{name: "UInt16", expr: "toUInt16(r % 91 * 719)", ranges: true, lists: true},
		{name: "UInt32", expr: "toUInt32(r % 91 * 47196744)", ranges: true, lists: true},
		{name: "UInt64", expr: "r % 91 * 202711446308259401", ranges: true, lists: true},
		{name: "Int8", expr: "toInt8(r % 256 - 128)", ranges: true, lists: true},
		{name: "Int16", expr: "toInt16(toInt64(r % 91) * 720 - 32768)", ranges: true, lists: true},
		{name: "Int32", expr: "toInt32(toInt64(r % 91) * 47721858 - 2147483648)", ranges: true, lists: true},
		{name: "Int64", expr: "reinterpretAsInt64(reinterpretAsString(r % 91 * 202711446308259401))", ranges: true, lists: true},
		{name: "Int128", expr: "toInt128(r % 91) * -170141183460469231", ranges: true, lists: true, modern: true},
		{name: "UInt256", expr: "toUInt256(r % 91) * toUInt256('115792089237316195423570985008687907853269984665640564039')", ranges: true, lists: true, modern: true},
		{name: "Float32", expr: "toFloat32(multiIf(r % 9 = 0, 0/0, r % 9 = 1, -0.0, r % 9 = 2, 1/0, r % 9 = 3, -1/0, r % 9 = 4, 0.0, (r % 40) / 8))"},
		{name: "Float64", expr: "multiIf(r % 9 = 0, 0/0, r % 9 = 1, -0/1.0 * 0, r % 9 = 2, 1/0, r % 9 = 3, -1/0, r % 9 = 4, 0.0, (r % 40) / 8)"},
		{name: "Decimal", expr: "toDecimal64(toInt64(r % 41) - 20, 3)", ranges: true, lists: true},
		{name: "Date", expr: "toDate('2026-01-01') + toUInt16(r % 70)", ranges: true, lists: true},
		{name: "Date32", expr: "toDate32('1905-01-01') + toUInt16(r % 70)", ranges: true, lists: true, modern: true},
		{name: "DateTime", expr: "toDateTime(1793000000 + r % 70 * 1800)", ranges: true, lists: true},
		{name: "DateTime zoned", expr: "toDateTime(1793000000 + r % 70 * 1800)", typ: "DateTime('Asia/Shanghai')", ranges: true, lists: true},
		{name: "DateTime64", expr: "toDateTime64(toFloat64(r % 50) / 8, 3)", ranges: true, lists: true, modern: true},
		{name: "UUID", expr: "toUUID(concat(substring(hex(cityHash64(r % 70)), 1, 8), '-5cb3-11e7-907b-a6006ad3dba0'))", ranges: true, lists: true},
		{name: "IPv4", expr: "toIPv4(IPv4NumToString(toUInt32(r % 70)))", modern: true},
		{name: "IPv6", expr: "toIPv6(concat('2001:db8::', hex(toUInt8(r % 50))))", modern: true},
		{name: "Enum8", expr: "CAST(toString(r % 3) AS Enum8('0' = 0, '1' = -1, '2' = 2))", lists: true},
		{name: "Enum16", expr: "CAST(toString(r % 3) AS Enum16('0' = 300, '1' = -1, '2' = 2))", lists: true},
		{name: "String", expr: "concat('v', substring(reinterpretAsString(r), 1, 1), unhex(hex(toUInt8(r % 256))))", ranges: true, lists: true},
		{name: "String of quotes", expr: `arrayElement(['', '\'', '\\', '\\\'', '"', '\0', 'a\0b', 'é', '%', '/*', '--', '\n'], r % 12 + 1)`, ranges: true, lists: true},
		{name: "FixedString", expr: "toFixedString(toString(r % 60), 4)", ranges: true, lists: true},
		{name: "FixedString of any bytes", expr: "toFixedString(substring(reinterpretAsString(r), 1, 2), 3)", ranges: true, lists: true},
		{name: "Bool", expr: "r % 2 = 0", typ: "Bool", modern: true},
		{name: "Nullable(UInt64)", expr: "if(r % 10 = 0, NULL, r % 33)", lists: true},
		{name: "Nullable(String)", expr: "if(r % 10 = 0, NULL, toString(r % 33))", lists: true},
		{name: "Nullable(Decimal)", expr: "if(r % 10 = 0, NULL, toDecimal64(r % 33, 2))"},
		{name: "Nullable(Date)", expr: "if(r % 10 = 0, NULL, toDate('2026-01-01') + toUInt16(r % 33))", lists: true},
		{name: "Nullable(Float64)", expr: "if(r % 10 = 0, NULL, if(r % 9 = 0, 0/0, (r % 40) / 8))"},
		{name: "only NULL", expr: "CAST(NULL AS Nullable(String))"},
		{name: "LowCardinality(String)", expr: "toLowCardinality(toString(r % 30))", ranges: true, lists: true, modern: true},
		{name: "LowCardinality(Nullable)", expr: "toLowCardinality(if(r % 10 = 0, NULL, toString(r % 30)))", lists: true, modern: true},
		{name: "Tuple", expr: "tuple(r % 9, toString(r % 7))", lists: true},
		{name: "Array", expr: "arrayMap(x -> concat(toString(x), '\\''), range(r % 6))", lists: true},
		{name: "Array of Tuple", expr: "arrayMap(x -> (x, toString(x)), range(r % 6))", lists: true, modern: true},
		{name: "Map", expr: "map(toString(r % 5), r % 7)", lists: true, modern: true},
	}
}

// For every type and each strategy that it has, over tables of random rows, the
// slices of a plan hold, together, each group of the whole once: none lost
// (NULL, NaN), none in two slices (±0, NaN payloads).
func TestSlicesAreCompleteAndDisjoint(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		db, seed := database(t, c), rand.Uint64()
		t.Logf("seed %d", seed)
		connected := nodes(t, c, newJob("", 0).Limits)
		for i, tc := range typeCases() {
			if tc.modern && c.Old {
				continue
			}
			t.Run(tc.name, func(t *testing.T) {
				table := fmt.Sprintf("%s.t%d", db, i)
				loadTyped(t, c, table, tc, seed)
				checkStrategies(t, c, connected, newJob(table, 0, "x"), tc)
			})
		}
	})
}

// An expression is a dimension as well.
func TestSlicesOfExpressions(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := database(t, c) + ".t"
		loadTyped(t, c, table, typeCase{expr: "r % 1000"}, 1)
		connected := nodes(t, c, newJob("", 0).Limits)
		for _, expr := range []string{"x % 7", "toString(x)", "if(x % 3 = 0, NULL, intDiv(x, 10))", "(x, x % 2)", "[x, x % 5]", "x > 500"} {
			t.Run(expr, func(t *testing.T) {
				checkStrategies(t, c, connected, newJob(table, 0, expr), typeCase{modern: true})
			})
		}
		t.Run("several dimensions", func(t *testing.T) {
			j := newJob(table, 5, "x % 2", "x % 3", "if(x % 3 = 0, NULL, x % 5)")
			up := checkSlices(t, c, connected, j)
			if up.Dimension != "d2, d1" && up.Dimension != "d2" {
				t.Errorf("cut by %s", up.Dimension)
			}
		})
	})
}

// loadTyped makes a table of one column x and its values v, placed by x, sorted
// by x if the type has ranges.
func loadTyped(t *testing.T, c *lab.Cluster, table string, tc typeCase, seed uint64) {
	t.Helper()
	made := fmt.Sprintf("SELECT %s AS x, number AS v FROM (SELECT number, cityHash64(number, %d) AS r FROM (SELECT number FROM system.numbers LIMIT 2000))", tc.expr, seed)
	typ := tc.typ
	if typ == "" {
		typ = query(t, c, "SELECT toTypeName(x) FROM ("+made+") LIMIT 1")
		typ = strings.ReplaceAll(typ, `\'`, `'`)
	}
	order := "tuple()"
	if tc.ranges {
		order = "x"
	}
	exec(t, c, fmt.Sprintf("CREATE TABLE %s_l (x %s, v UInt64) ENGINE = MergeTree ORDER BY %s SETTINGS index_granularity = 64", table, typ, order))
	const place = "ifNull(cityHash64(toString(x)), 0)"
	db, name, _ := strings.Cut(table, ".")
	exec(t, c, fmt.Sprintf("CREATE TABLE %s AS %s_l ENGINE = Distributed(%s, %s, %s_l, %s)", table, table, lab.ClusterName, db, name, place))
	for i, n := range c.Nodes {
		sql := fmt.Sprintf("INSERT INTO %s_l SELECT * FROM (%s) WHERE %s %% %d = %d", table, made, place, len(c.Nodes), i)
		if err := n.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

func checkStrategies(t *testing.T, c *lab.Cluster, connected []*clickhouse.Node, j *job.Job, tc typeCase) {
	t.Helper()
	has := map[scatter.Strategy]bool{scatter.StrategyHash: true, scatter.StrategyLocal: !tc.modern || tc.name != "", scatter.StrategyRange: tc.ranges, scatter.StrategyValues: tc.lists}
	if tc.name == "" {
		delete(has, scatter.StrategyLocal) // an expression may hold the sharding key or not
		delete(has, scatter.StrategyValues)
	}
	for strategy, usable := range has {
		j.Scatter = job.Scatter{Slices: 7, PerNode: 1, Strategy: string(strategy)}
		if usable {
			checkSlices(t, c, connected, j)
		} else if _, err := plan(t, connected, j); failure.ClassOf(err) != failure.Preflight {
			t.Errorf("%s slices: %v", strategy, err)
		}
	}
}

func plan(t *testing.T, connected []*clickhouse.Node, j *job.Job) (*scatter.UnitPlan, error) {
	t.Helper()
	plan, err := newPlanner(connected, j).Plan(t.Context(), date)
	if err != nil {
		return nil, err
	}
	return &plan.Units[0], nil
}

// checkSlices compares what the slices of a plan give together, each asked of
// its own node, with the whole.
func checkSlices(t *testing.T, c *lab.Cluster, connected []*clickhouse.Node, j *job.Job) *scatter.UnitPlan {
	t.Helper()
	up, err := plan(t, connected, j)
	if err != nil {
		t.Error(err)
		return &scatter.UnitPlan{}
	}
	var keys, texts []string
	for i, d := range j.Dimensions {
		keys = append(keys, fmt.Sprintf("%s AS _ck2hbase_d%d", d.Expr, i))
		texts = append(texts, fmt.Sprintf("ifNull(toString(_ck2hbase_d%d), 'NULL')", i))
	}
	whole := fmt.Sprintf("SELECT %s, sum(v) AS _ck2hbase_m0, count() AS _ck2hbase_n FROM %s GROUP BY ", strings.Join(keys, ", "), j.Source.Table)
	for i := range j.Dimensions {
		whole += fmt.Sprintf("_ck2hbase_d%d, ", i)
	}
	digest := "SELECT count(), sum(_ck2hbase_n), sum(cityHash64(concat(" + strings.Join(texts, ", ':', ") + ", ':', toString(_ck2hbase_m0)))) FROM (%s)"
	want := sums(t, c.Nodes[0], fmt.Sprintf(digest, strings.TrimSuffix(whole, ", ")))
	var got [3]uint64
	for _, s := range up.Slices {
		n := c.Nodes[0]
		for _, other := range c.Nodes {
			if uint32(other.Shard) == s.Shard {
				n = other
			}
		}
		part := sums(t, n, fmt.Sprintf(digest, s.SQL))
		if !s.Estimated && part[1] != s.Rows {
			t.Errorf("slice %s (%s) has %d rows, the plan counted %d", s.Name, s.Takes(), part[1], s.Rows)
		}
		for i := range got {
			got[i] += part[i]
		}
	}
	if got != want {
		t.Errorf("%d %s slices: groups, rows and digest are %d, of the whole %d\n%s", len(up.Slices), up.Strategy, got, want, up.Slices[0].SQL)
	}
	return up
}

func sums(t *testing.T, n *lab.Node, sql string) (out [3]uint64) {
	t.Helper()
	text, err := n.Query(t.Context(), sql)
	if err == nil {
		_, err = fmt.Sscan(text, &out[0], &out[1], &out[2])
	}
	if err != nil {
		t.Error(errors.Join(fmt.Errorf("%s", sql), err))
	}
	return out
}
