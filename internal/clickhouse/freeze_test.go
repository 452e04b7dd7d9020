package clickhouse_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A query that is given up while its part on another shard waits for a lock
// must not stop anybody else's queries. KILL QUERY would, on servers before
// 20.1, whose lock it is, too.
func TestGivingUpFreezesNoServer(t *testing.T) {
	c := over(t, shared(t, true), ways["18.16 native"])
	table := fmt.Sprintf("locked_%d", time.Now().UnixNano())
	for _, n := range c.Nodes {
		run(t, n, "CREATE TABLE default."+table+" (d Date, x UInt64) ENGINE = MergeTree PARTITION BY d ORDER BY x SETTINGS index_granularity = 8")
		t.Cleanup(func() { _ = n.Exec(context.WithoutCancel(t.Context()), "DROP TABLE default."+table) })
	}
	blocked := c.Nodes[1]
	run(t, blocked, "INSERT INTO default."+table+" SELECT toDate('2026-11-29'), number FROM (SELECT number FROM system.numbers LIMIT 400)")
	shows := func(query string) bool {
		out, err := blocked.Query(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '"+query+"%'")
		return err == nil && strings.TrimSpace(out) == "1"
	}

	// A long SELECT holds the table, a DROP PARTITION waits for it, and whatever
	// comes next waits behind that.
	holder, drop := "SELECT sleepEachRow(0.3) FROM default."+table, "ALTER TABLE default."+table+" DROP PARTITION"
	ctx, end := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer func() {
		end()
		run(t, blocked, "KILL QUERY WHERE query LIKE '"+holder+"%' ASYNC")
		others.Wait()
	}()
	others.Go(func() { _ = blocked.Exec(ctx, holder+" SETTINGS max_block_size = 1, max_threads = 1") })
	waitFor(t, "the SELECT to run", func() bool { return shows(holder) })
	others.Go(func() { _ = blocked.Exec(ctx, drop+" '2026-11-29'") })
	waitFor(t, "the ALTER to wait", func() bool { return shows(drop) })

	n := open(t, source(c), limits).Nodes()[0]
	asked, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	id := queryID(t)
	done := ask(asked, n, id, "SELECT x, count() FROM cluster('"+lab.ClusterName+"', default, "+table+") GROUP BY x")
	waitFor(t, "the query to run on "+blocked.Name, func() bool { return running(t, blocked, id) != "0" })
	giveUp()
	if err := <-done; clickhouse.KindOf(err) != clickhouse.KindCancelled {
		t.Errorf("giving up gave %v", err)
	}
	for _, node := range c.Nodes {
		if _, err := node.Query(t.Context(), "SELECT count() FROM system.processes"); err != nil {
			t.Error(err)
		}
	}
	if !shows(holder) {
		t.Error("the table was held until the servers answered")
	}
}

func run(t *testing.T, n *lab.Node, sql string) {
	t.Helper()
	if err := n.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
