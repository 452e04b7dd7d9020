package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

func TestOpenFindsEveryNode(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		client := open(t, source(c), limits)
		var got []string
		for _, n := range client.Nodes() {
			got = append(got, n.Addr)
			if !strings.HasPrefix(n.Version, c.Version[:2]) {
				t.Errorf("node %s says it is version %q, the lab says %q", n.Addr, n.Version, c.Version)
			}
		}
		if diff := cmp.Diff(c.addrs, got); diff != "" {
			t.Errorf("nodes: %s", diff)
		}
	})
}

func TestOpenRefusesWithAReason(t *testing.T) {
	c := over(t, shared(t, false), way{})
	good := source(c)
	cases := map[string]struct {
		change func(*job.Source)
		want   string
		remedy string
	}{
		"nobody there":      {func(s *job.Source) { s.Addresses = []string{"127.0.0.1:1"} }, "no ClickHouse node can be reached", "source.addresses"},
		"not resolvable":    {func(s *job.Source) { s.Addresses = []string{"nohost.invalid:9000"} }, "nohost.invalid", "source.addresses"},
		"HTTP port":         {func(s *job.Source) { s.Addresses = []string{c.Nodes[0].HTTPAddr()} }, c.Nodes[0].HTTPAddr(), ""},
		"wrong password":    {func(s *job.Source) { s.Password = "guess" }, "Authentication failed", "source.password"},
		"unknown user":      {func(s *job.Source) { s.Username = "nobody" }, "Authentication failed", "source.username"},
		"unknown cluster":   {func(s *job.Source) { s.Cluster = "lba" }, `there is no cluster "lba"`, "lab"},
		"node map astray":   {func(s *job.Source) { s.NodeMap = map[string]string{"127.0.0.1": "127.0.0.1:1"} }, "no replica of shard", "source.node_map"},
		"one bad, one good": {func(s *job.Source) { s.Addresses = []string{"127.0.0.1:1", c.addrs[1]} }, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			src := good
			tc.change(&src)
			begin := time.Now()
			client, err := clickhouse.Open(t.Context(), src, limits, 1, slog.New(slog.DiscardHandler))
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("took %v", took)
			}
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				client.Close()
				return
			}
			if failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(failure.Remedy(err), tc.remedy) {
				t.Errorf("class %d, error %v, remedy %q; want the preflight class, %q and %q",
					failure.ClassOf(err), err, failure.Remedy(err), tc.want, tc.remedy)
			}
			if strings.Contains(fmt.Sprint(err), "guess") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// A server that takes the settings of a readonly user without applying them
// (18.16) would run unbounded; one that refuses them (26.9) is as useless.
func TestLimitsMustBeInForce(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		src := source(c)
		src.Username, src.Password = lab.ReadonlyUser, lab.ReadonlyPassword
		_, err := clickhouse.Open(t.Context(), src, limits, 1, slog.New(slog.DiscardHandler))
		if failure.ClassOf(err) != failure.Preflight || !strings.Contains(failure.Remedy(err), "readonly") {
			t.Errorf("error %v (class %d), remedy %q; want a preflight error about readonly", err, failure.ClassOf(err), failure.Remedy(err))
		}
	})
}

// read gives the rows of a query and their number.
func read(t *testing.T, n *clickhouse.Node, sql string, countLast bool) (*row.Batch, int) {
	t.Helper()
	s, err := n.Stream(t.Context(), clickhouse.Query{ID: queryID(t), SQL: sql, CountLast: countLast})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer s.Close()
	b := &row.Batch{Width: len(s.Columns)}
	for {
		more, err := s.Next(b, b.Len()+7)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if !more {
			return b, b.Len()
		}
	}
}

// Every type arrives as the value that SQL says, on both servers.
func TestValuesArrive(t *testing.T) {
	text := func(s string) row.Value { return row.Value{Kind: row.String, Str: s} }
	u := func(n uint64) row.Value { return row.Value{Kind: row.UInt, Num: n} }
	i := func(n int64) row.Value { return row.Value{Kind: row.Int, Num: uint64(n)} }
	f := func(x float64) row.Value { return row.Value{Kind: row.Float, Num: math.Float64bits(x)} }
	dec := func(n int64) row.Value { return row.Value{Kind: row.Decimal, Big: big.NewInt(n)} }
	null := func(k row.Kind) row.Value { return row.Value{Kind: k, Null: true} }
	huge, _ := new(big.Int).SetString("-170141183460469231731687303715884105728", 10)
	both := map[string]row.Value{
		"toUInt8(255)":                     u(255),
		"toUInt16(65535)":                  u(65535),
		"toUInt32(4294967295)":             u(4294967295),
		"toUInt64('18446744073709551615')": u(math.MaxUint64),
		"toInt8(-128)":                     i(-128),
		"toInt16(-32768)":                  i(-32768),
		"toInt32(-2147483648)":             i(math.MinInt32),
		"toInt64('-9223372036854775808')":  i(math.MinInt64),
		"toFloat32(0.5)":                   f(0.5),
		"toFloat64(-0.1)":                  f(-0.1),
		"-1 / 0":                           f(math.Inf(-1)),
		"toDecimal32('-1.5', 3)":           dec(-1500),
		"toDecimal64('0.10', 2)":           dec(10),
		"toDecimal128('123', 0)":           dec(123),
		`'a\0ÿ\n'`:                         text("a\x00ÿ\n"),
		"unhex('FF00FE')":                  text("\xff\x00\xfe"),
		"toFixedString('ab', 4)":           text("ab\x00\x00"),
		"toDate('1970-01-02')":             {Kind: row.Date, Num: 1},
		"toDate('2026-11-29')":             {Kind: row.Date, Num: 20786},
		"toDateTime('1970-01-01 02:00:00', 'Europe/Berlin')": {Kind: row.DateTime, Num: 3600},
		"toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')":     text("61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
		"CAST('b' AS Enum8('a' = 1, 'b' = 2))":               text("b"),
		"CAST(NULL AS Nullable(UInt32))":                     null(row.UInt),
		"CAST(7 AS Nullable(UInt32))":                        u(7),
		"CAST(NULL AS Nullable(String))":                     null(row.String),
		"CAST('' AS Nullable(String))":                       text(""),
		"CAST(NULL AS Nullable(Float64))":                    null(row.Float),
		"CAST(toDate('1970-01-03') AS Nullable(Date))":       {Kind: row.Date, Num: 2},
		"sum(1) + 41": u(42),
		"avg(2)":      f(2),
	}
	modern := map[string]row.Value{
		"true": {Kind: row.Bool, Num: 1},
		"toInt128('-170141183460469231731687303715884105728')": {Kind: row.BigInt, Big: huge},
		"toUInt256(7)":                                      {Kind: row.BigInt, Big: big.NewInt(7)},
		"toDecimal256('-1.5', 40)":                          {Kind: row.Decimal, Big: new(big.Int).Mul(big.NewInt(-15), new(big.Int).Exp(big.NewInt(10), big.NewInt(39), nil))},
		"toDate32('1960-01-01')":                            {Kind: row.Date, Num: ^uint64(3653 - 1)},
		"toDateTime64('1970-01-01 00:00:01.250', 3, 'UTC')": {Kind: row.DateTime, Num: 1250},
		"toDateTime64('1969-12-31 23:59:59.250', 3, 'UTC')": {Kind: row.DateTime, Num: ^uint64(750 - 1)},
		"toIPv4('10.0.0.1')":                                text("10.0.0.1"),
		"toIPv6('::ffff:10.0.0.1')":                         text("::ffff:10.0.0.1"),
		"toIPv6('2001:db8::1')":                             text("2001:db8::1"),
		"toLowCardinality('x')":                             text("x"),
		"CAST(NULL AS LowCardinality(Nullable(String)))":    null(row.String),
		"CAST('y' AS LowCardinality(Nullable(String)))":     text("y"),
		"CAST(NULL AS Nullable(Decimal(18, 2)))":            null(row.Decimal),
		"CAST('2.5' AS Nullable(Decimal(18, 2)))":           dec(250),
		"CAST(NULL AS Nullable(UUID))":                      null(row.String),
		"CAST(NULL AS Nullable(Bool))":                      null(row.Bool),
		"CAST(NULL AS Nullable(IPv6))":                      null(row.String),
		"CAST(NULL AS Nullable(Int128))":                    null(row.BigInt),
		"CAST(NULL AS Nullable(DateTime64(3)))":             null(row.DateTime),
	}
	onEach(t, func(t *testing.T, c *target) {
		n := open(t, source(c), limits).Nodes()[0]
		check := func(expr string, want row.Value) {
			b, rows := read(t, n, "SELECT "+expr+" AS x, count() FROM system.one", true)
			if rows != 1 || !cmp.Equal(b.Values[0], want, cmp.Comparer(func(a, b *big.Int) bool {
				return a == b || a != nil && b != nil && a.Cmp(b) == 0
			})) {
				t.Errorf("%s arrived as %+v (%d rows), want %+v", expr, b.Values, rows, want)
			}
		}
		for expr, want := range both {
			check(expr, want)
		}
		if strings.HasPrefix(c.Version, "26") {
			for expr, want := range modern {
				check(expr, want)
			}
		}
	})
}

func drainQuery(ctx context.Context, n *clickhouse.Node, sql string) error {
	s, err := n.Stream(ctx, clickhouse.Query{ID: fmt.Sprintf("test-drain-%d", time.Now().UnixNano()), SQL: sql})
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		b := &row.Batch{Width: len(s.Columns)}
		more, err := s.Next(b, 5000)
		if err != nil || !more {
			return err
		}
	}
}

// queryID is another one at each call.
func queryID(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("test-%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}

// A stream that is cut is not an end: the connection dies in the middle.
func TestCutStreamIsNoEnd(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		proxy := lab.Proxy(t, c.plain(c.Nodes[0]))
		src := source(c)
		src.Addresses = []string{c.secured(t, proxy.Addr())}
		src.NodeMap[c.TCPAddrs()[0]] = src.Addresses[0]
		n := open(t, src, limits).Nodes()[0]
		proxy.LimitData(lab.ToClient, 300_000)
		err := drainQuery(t.Context(), n, "SELECT number, sipHash64(number) FROM (SELECT number FROM system.numbers LIMIT 3000000)")
		if clickhouse.KindOf(err) != clickhouse.KindElsewhere || failure.ClassOf(err) != failure.Transient {
			t.Errorf("a cut stream gave %v (kind %d, class %d)", err, clickhouse.KindOf(err), failure.ClassOf(err))
		}
	})
}
