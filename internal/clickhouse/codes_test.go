package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A verdict is what an error must be.
type verdict struct {
	codes  []int32 // any of them
	kind   clickhouse.Kind
	class  failure.Class
	remedy string // a part of it
}

func permanent(remedy string, codes ...int32) verdict {
	return verdict{codes, clickhouse.KindPermanent, failure.Source, remedy}
}

func ourLimit(codes ...int32) verdict {
	return verdict{codes, clickhouse.KindLimit, failure.Source, "raise the limit"}
}

func elsewhere(codes ...int32) verdict {
	return verdict{codes, clickhouse.KindElsewhere, failure.Transient, ""}
}

func later(codes ...int32) verdict {
	return verdict{codes, clickhouse.KindLater, failure.Transient, ""}
}

func (v verdict) check(t *testing.T, err error) {
	t.Helper()
	var code int32
	if q, ok := errors.AsType[*clickhouse.QueryError](err); ok {
		code = q.Code
	}
	if !slices.Contains(v.codes, code) || clickhouse.KindOf(err) != v.kind || failure.ClassOf(err) != v.class || !strings.Contains(failure.Remedy(err), v.remedy) {
		t.Errorf("code %d, kind %d, class %d, remedy %q; want %+v: %v", code, clickhouse.KindOf(err), failure.ClassOf(err), failure.Remedy(err), v, err)
	}
}

// What real servers say to bad queries, and to good ones that reach a limit.
func TestErrorsOfQueries(t *testing.T) {
	tight := limits
	tight.MaxExecutionTime = time.Second
	memory := limits
	memory.MaxMemoryUsage, memory.MaxBytesBeforeExternalGroupBy = 20<<20, 0
	cases := map[string]struct {
		sql    string
		limits job.Limits
		want   verdict
	}{
		"time limit":       {"SELECT count() FROM (SELECT sipHash64(number) AS h FROM system.numbers LIMIT 100000000000) WHERE h = 1", tight, ourLimit(159)},
		"time on a shard":  {endless, tight, ourLimit(159)},
		"memory limit":     {"SELECT toString(number) AS k, count() FROM (SELECT number FROM system.numbers LIMIT 20000000) GROUP BY k", memory, ourLimit(241)},
		"syntax":           {"SELEC 1", limits, permanent("source.table, the dimensions", 62)},
		"unknown table":    {"SELECT 1 FROM system.nothing_there", limits, permanent("source.table", 60)},
		"unknown column":   {"SELECT nothing_there FROM system.one", limits, permanent("the metrics", 47)},
		"unknown word":     {"SELECT nothing_there(1) FROM system.one", limits, permanent("", 46)},
		"thrown midway":    {"SELECT throwIf(number = 1500000) FROM (SELECT number FROM system.numbers LIMIT 2000000)", limits, permanent("throwIf", 395)},
		"shard is away":    {"SELECT * FROM remote('127.0.0.1:1', system, one)", limits, elsewhere(279, 369)},
		"unread type":      {"SELECT uniqState(number), count() FROM (SELECT number FROM system.numbers LIMIT 9)", limits, permanent("finalizeAggregation", 0)},
		"not in the table": {"SELECT toUInt8(materialize('a'))", limits, permanent("is not in the mover's table", 6)},
	}
	onEach(t, func(t *testing.T, c *target) {
		t.Run("unknown setting", func(t *testing.T) {
			want := permanent("a setting", 115)
			if c.old {
				want = permanent("the dimensions", 46) // it has no such function
			}
			want.check(t, drainQuery(t.Context(), open(t, source(c), limits).Nodes()[0], "SELECT getSetting('nothing_there')"))
		})
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				tc.want.check(t, drainQuery(t.Context(), open(t, source(c), tc.limits).Nodes()[0], tc.sql))
			})
		}
	})
}

// What they say to users that have a quota or a limit of their own.
func TestErrorsOfUsers(t *testing.T) {
	users := usersXML(map[string]string{
		"slow":  "<min_execution_speed>1000000000000</min_execution_speed>",
		"rows":  "<max_rows_to_read>100000</max_rows_to_read>",
		"bytes": "<max_bytes_to_read>100000</max_bytes_to_read>",
		"few":   "<max_concurrent_queries_for_user>3</max_concurrent_queries_for_user>",
	})
	const million = "SELECT count() FROM (SELECT sipHash64(number) AS h FROM system.numbers LIMIT 300000000) WHERE h = 1"
	eachVersion(t, lab.ClickHouseOptions{UsersXML: []string{users}}, func(t *testing.T, c *target) {
		for user, want := range map[string]verdict{"slow": ourLimit(160), "rows": ourLimit(158), "bytes": ourLimit(307)} {
			t.Run(user, func(t *testing.T) {
				client, err := tryOpen(t, as(source(c), user), limits)
				if err == nil {
					err = drainQuery(t.Context(), client.Nodes()[0], million)
				} else if c.old && user == "slow" { // every query is
					want.class = failure.Preflight
				}
				want.check(t, err)
			})
		}
		t.Run("few", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var nodes []*clickhouse.Node
			for range 4 {
				nodes = append(nodes, open(t, as(source(c), "few"), limits).Nodes()[0])
			}
			var ids []string
			var done []<-chan error
			for _, busy := range nodes[:3] {
				id := queryID(t)
				ids, done = append(ids, id), append(done, ask(ctx, busy, id, endlessHere))
				runsEverywhere(t, c, id)
			}
			later(202).check(t, drainQuery(t.Context(), nodes[3], "SELECT 1"))
			cancel()
			for i, id := range ids {
				<-done[i]
				gone(t, c, id)
			}
		})
		t.Run("login", func(t *testing.T) {
			src := source(c)
			src.Password = "guess"
			_, err := tryOpen(t, src, limits)
			want := permanent("source.password", 193, 516)
			want.class = failure.Preflight
			want.check(t, err)
			src.Username, src.Password = "nobody", ""
			_, err = tryOpen(t, src, limits)
			want.codes = []int32{192, 516}
			want.check(t, err)
			src.Username = lab.MoverUser
			_, err = tryOpen(t, src, limits)
			want.codes = []int32{193, 194, 516}
			want.check(t, err)
		})
	})
}

// A quota that is used up says when there is a new one.
func TestQuotaSaysWhenItEnds(t *testing.T) {
	const quota = "<quotas><rationed><interval><duration>3600</duration><queries>60</queries></interval></rationed></quotas>" +
		"<users><rationed><password>" + userPassword + "</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>rationed</quota></rationed></users>"
	eachVersion(t, lab.ClickHouseOptions{UsersXML: []string{quota}}, func(t *testing.T, c *target) {
		if c.protocol == job.HTTP {
			return // the quota is the server's, and the native protocol has used it up
		}
		n := open(t, as(source(c), "rationed"), limits).Nodes()[0]
		var err error
		for range 100 {
			// 26.9 does not count questions about nothing.
			if err = drainQuery(t.Context(), n, "SELECT number FROM system.numbers LIMIT 1"); err != nil {
				break
			}
		}
		later(201).check(t, err)
		// Intervals begin at full hours of the server's clock.
		want := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour))
		if got := clickhouse.RetryAfter(err); (got-want).Abs() > time.Minute && !(got < time.Minute && want > 59*time.Minute) {
			t.Errorf("the quota ends in %v, want %v: %v", got, want, err)
		}
		if clickhouse.RetryAfter(errors.New("another")) != 0 {
			t.Error("an error that says nothing has a time")
		}
	})
}

// What happens on the way to the server, before a query and during it.
func TestErrorsOfTheWay(t *testing.T) {
	breaks := map[string]func(p *lab.NetProxy){
		"refused": func(p *lab.NetProxy) { p.Disable() },
		"reset":   func(p *lab.NetProxy) { p.ResetPeer(lab.ToClient, 0) },
		"closed":  func(p *lab.NetProxy) { p.LimitData(lab.ToClient, 1) },
	}
	onEach(t, func(t *testing.T, c *target) {
		for name, breakIt := range breaks {
			t.Run(name, func(t *testing.T) {
				proxy := lab.Proxy(t, c.plain(c.Nodes[0]))
				src := source(c)
				src.Addresses = []string{c.secured(t, proxy.Addr())}
				src.NodeMap[c.TCPAddrs()[0]] = src.Addresses[0]
				n := open(t, src, limits).Nodes()[0]
				breakIt(proxy)
				elsewhere(0).check(t, drainQuery(t.Context(), n, "SELECT 1"))
				proxy.Heal()
				if name == "refused" {
					proxy.Enable()
				}
				if err := drainQuery(t.Context(), n, "SELECT 1"); err != nil {
					t.Errorf("healed: %v", err)
				}
			})
		}
	})
}

// A shard that dies under a query is a reason to try elsewhere, and later.
func TestShardDies(t *testing.T) {
	for _, w := range []way{{}, overHTTP, {old: true}} {
		t.Run(fmt.Sprintf("old %v %s", w.old, w.protocol), func(t *testing.T) {
			cluster, err := lab.StartClickHouse(t.Context(), lab.ClickHouseOptions{Old: w.old, Shards: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cluster.Stop() })
			c := over(t, cluster, w)
			// 18.16 notices when it is done with its own part.
			short := limits
			short.MaxExecutionTime = 5 * time.Second
			n := open(t, source(c), short).Nodes()[0]
			id := queryID(t)
			done := ask(t.Context(), n, id, endless)
			runsEverywhere(t, c, id)
			if err := c.Nodes[1].Kill(); err != nil {
				t.Fatal(err)
			}
			elsewhere(32, 209, 210, 279, 425, 519, 999).check(t, <-done)
			elsewhere(279, 369, 519).check(t, drainQuery(t.Context(), n, endless))
		})
	}
}
