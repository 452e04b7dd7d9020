package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// endless never ends on any shard.
const endless = "SELECT sipHash64(number) % 1000 AS k, count() FROM cluster('" + lab.ClusterName + "', system, numbers) GROUP BY k"

// endlessHere never ends on its initiator.
const endlessHere = "SELECT sipHash64(number) % 1000 AS k, count() FROM system.numbers GROUP BY k"

// running tells how many queries a node runs for an id, its own and others'.
func running(t *testing.T, n *lab.Node, id string) string {
	t.Helper()
	out, err := n.Query(t.Context(), "SELECT count() FROM system.processes WHERE query_id = '"+id+"' OR initial_query_id = '"+id+"'")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// runsEverywhere waits until every node has its part of a query.
func runsEverywhere(t *testing.T, c *target, id string) {
	t.Helper()
	for _, n := range c.Nodes {
		waitFor(t, "the query to run on "+n.Name, func() bool { return running(t, n, id) != "0" })
	}
}

// gone wants a query to have ended on its initiator by now, and its parts on
// the other nodes soon.
func gone(t *testing.T, c *target, id string) {
	t.Helper()
	if left := running(t, c.Nodes[0], id); left != "0" {
		t.Errorf("%s queries still run on the initiator", left)
	}
	for _, n := range c.Nodes[1:] {
		waitFor(t, "the query to be gone from "+n.Name, func() bool { return running(t, n, id) == "0" })
	}
}

// ask runs a query until it ends or is given up.
func ask(ctx context.Context, n *clickhouse.Node, id, sql string) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- n.Rows(ctx, clickhouse.Query{ID: id, SQL: sql}, func(func(...any) error) error { return nil })
	}()
	return done
}

// A query that is given up has ended when the error is returned, and soon
// after on every shard.
func TestCancelledQueryEndsOnTheServers(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		n := open(t, source(c), limits).Nodes()[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id := queryID(t)
		done := ask(ctx, n, id, endless)
		runsEverywhere(t, c, id)
		cancel()
		if err := <-done; clickhouse.KindOf(err) != clickhouse.KindCancelled || failure.ClassOf(err) != failure.Transient {
			t.Errorf("cancelling gave %v (class %d)", err, failure.ClassOf(err))
		}
		gone(t, c, id)
	})
}

// So has one whose stream is closed before its end.
func TestClosedStreamEndsOnTheServers(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		n := open(t, source(c), limits).Nodes()[0]
		id := queryID(t)
		s, err := n.Stream(t.Context(), clickhouse.Query{ID: id, SQL: "SELECT number, sipHash64(number) FROM (SELECT number FROM cluster('" + lab.ClusterName + "', system, numbers) LIMIT 5000000)"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(&row.Batch{Width: 2}, 10); err != nil {
			t.Error(err)
		}
		_ = s.Close() // what a stream that was given up says of its end is of no interest
		gone(t, c, id)
	})
}

// The queries of a process that died are ended by the next one, and no others.
func TestKillLeftovers(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		n := open(t, source(c), limits).Nodes()[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id, other := queryID(t)+"-left", queryID(t)+"-other"
		dead := open(t, source(c), limits).Nodes()[0]
		done, still := ask(ctx, dead, id, endless), ask(ctx, dead, other, endless)
		runsEverywhere(t, c, id)
		runsEverywhere(t, c, other)
		killed, err := n.KillLeftovers(t.Context(), strings.TrimSuffix(id, "left"))
		if killed != 1 || err != nil {
			t.Errorf("killed %d: %v", killed, err)
		}
		gone(t, c, id)
		if running(t, c.Nodes[0], other) == "0" {
			t.Error("another query is gone, too")
		}
		// Whoever asked is told that it was killed, and not to try again. 18.16
		// sends what it has so far, as if it were all: that is found out by
		// counting rows (package mover).
		if err := <-done; !c.old && (clickhouse.KindOf(err) != clickhouse.KindPermanent || !strings.Contains(failure.Remedy(err), "KILL QUERY")) {
			t.Errorf("a killed query gave %v (kind %d), remedy %q", err, clickhouse.KindOf(err), failure.Remedy(err))
		}
		cancel()
		if err := <-still; !errors.Is(err, context.Canceled) && clickhouse.KindOf(err) != clickhouse.KindCancelled {
			t.Errorf("the other query ended with %v", err)
		}
		gone(t, c, other)
	})
}

// A user that is readonly=1 can end its own queries.
func TestReadonlyUserCancels(t *testing.T) {
	const profile = "<readonly>1</readonly><max_execution_time>30</max_execution_time><max_memory_usage>1000000000</max_memory_usage>" +
		"<max_bytes_before_external_group_by>500000000</max_bytes_before_external_group_by>" + complete
	users := usersXML(map[string]string{"reader": profile})
	eachVersion(t, lab.ClickHouseOptions{UsersXML: []string{users}}, func(t *testing.T, c *target) {
		n := open(t, as(source(c), "reader"), limits).Nodes()[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id := queryID(t)
		done := ask(ctx, n, id, endlessHere)
		runsEverywhere(t, c, id)
		cancel()
		if err := <-done; clickhouse.KindOf(err) != clickhouse.KindCancelled {
			t.Error(err)
		}
		gone(t, c, id)
	})
}

// A server that shuts down takes no connections any more and kills its
// queries, with the code of KILL QUERY: that is a reason to try elsewhere.
func TestShutdownIsNoKill(t *testing.T) {
	for _, w := range []way{{}, overHTTP} {
		t.Run(string(w.protocol), func(t *testing.T) {
			c, door, id, done := askBehindDoor(t, w)
			_ = door.Close()
			if err := c.Nodes[0].Exec(t.Context(), "KILL QUERY WHERE query_id = '"+id+"' ASYNC"); err != nil {
				t.Fatal(err)
			}
			if err := <-done; clickhouse.KindOf(err) != clickhouse.KindElsewhere || failure.ClassOf(err) != failure.Transient || !strings.Contains(err.Error(), "code 394") {
				t.Errorf("kind %d: %v", clickhouse.KindOf(err), err)
			}
		})
	}
}

// A query whose connection is lost is ended, too: it will be asked again
// elsewhere.
func TestLostQueryEndsOnTheServers(t *testing.T) {
	for _, w := range []way{{}, {protocol: job.HTTP}, {old: true}} {
		t.Run(fmt.Sprintf("old %v %s", w.old, w.protocol), func(t *testing.T) {
			c, door, id, done := askBehindDoor(t, w)
			door.cut()
			elsewhere(0).check(t, <-done)
			gone(t, c, id)
		})
	}
}

// askBehindDoor asks an endless query of the first node, which is reached through
// a door, and waits until it runs.
func askBehindDoor(t *testing.T, w way) (c *target, d *door, id string, done <-chan error) {
	t.Helper()
	c = over(t, shared(t, w.old), w)
	src := source(c)
	d = newDoor(t, c.addrs[0])
	src.Addresses = []string{d.Addr().String()}
	src.NodeMap[c.TCPAddrs()[0]] = src.Addresses[0]
	n := open(t, src, limits).Nodes()[0]
	id = queryID(t)
	done = ask(t.Context(), n, id, endless)
	runsEverywhere(t, c, id)
	return c, d, id, done
}

// A door leads to an address. Closed, it lets nobody in and nobody out.
type door struct {
	net.Listener
	to string

	mu   sync.Mutex
	open []net.Conn
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l, to: to}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go d.relay(in)
		}
	}()
	return d
}

// cut ends the connections that there are, and takes new ones.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.open {
		_ = c.Close()
	}
}

func (d *door) relay(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	defer out.Close()
	d.mu.Lock()
	d.open = append(d.open, in)
	d.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

// Every query says in the server's log what it was for.
func TestLogComment(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		client := open(t, source(c), limits)
		client.Label("shop", "r1")
		n := client.Nodes()[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id := "ck2hbase-r1-" + queryID(t)
		done := ask(ctx, n, id, endless)
		runsEverywhere(t, c, id)
		for _, node := range c.Nodes {
			out, err := node.Query(t.Context(), "SELECT DISTINCT Settings['log_comment'] FROM system.processes WHERE initial_query_id = '"+id+"'")
			if c.old { // which has none
				break
			}
			want := fmt.Sprintf(`{"job":"shop","run":"r1","query":%q}`, strings.TrimPrefix(id, "ck2hbase-r1-"))
			if got := strings.TrimSpace(out); err != nil || got != want {
				t.Errorf("%s: log_comment %q, want %q: %v", node.Name, got, want, err)
			}
		}
		cancel()
		<-done
	})
}
