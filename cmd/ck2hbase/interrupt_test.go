package main

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// A hole takes connections and never answers. visited gets a value for each
// connection, as long as there is room.
func hole(t *testing.T) (address string, visited chan bool) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	visited = make(chan bool, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case visited <- true:
			default:
			}
			go io.Copy(io.Discard, conn)
		}
	}()
	return listener.Addr().String(), visited
}

// interrupt runs a command and interrupts it when it has come to a place.
func (j *testJob) interrupt(there func(stderr *locked), args ...string) {
	j.t.Helper()
	ctx, cancel := context.WithCancel(j.t.Context())
	defer cancel()
	var stderr locked
	done := make(chan outcome, 1)
	go func() { done <- j.commandIn(ctx, &stderr, args...) }()
	there(&stderr)
	begin := time.Now()
	cancel()
	o := <-done
	if took := time.Since(begin); o.code != 8 || took > 10*time.Second || !strings.Contains(o.stderr, "interrupted") {
		j.t.Errorf("%v after the interruption: %v", took, o)
	}
}

// An interruption is heard wherever the program waits.
func TestInterruptedWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"run": {"run", "JOB", "--date", date}, "plan": {"plan", "JOB", "--date", date}} {
		t.Run(name+" for ClickHouse", func(t *testing.T) {
			t.Parallel()
			address, visited := hole(t)
			newJob(t, modern, "ADDRESSES", address).interrupt(func(*locked) { <-visited }, args...)
		})
	}
	for name, args := range map[string][]string{"run": {"run", "JOB", "--date", date}, "get": {"get", "JOB", "shop=1", "channel=app"}, "scan": {"scan", "JOB"}} {
		t.Run(name+" for ZooKeeper", func(t *testing.T) {
			t.Parallel()
			address, visited := hole(t)
			newJob(t, modern, "QUORUM", address).interrupt(func(*locked) { <-visited }, args...)
		})
	}
	t.Run("run for the region servers", func(t *testing.T) {
		t.Parallel()
		address, visited := hole(t)
		holes := map[string]string{}
		for server := range proxyHBase(t) {
			holes[server] = address
		}
		newJob(t, modern, "[\"QUORUM\"]\n", "[\"QUORUM\"]\n        node_map: "+nodeMap(holes)+"\n").
			interrupt(func(*locked) { <-visited }, "run", "JOB", "--date", date)
	})
	t.Run("run for the lease", func(t *testing.T) {
		t.Parallel()
		j := newSlowJob(t, modern)
		p := j.start("run", "JOB", "--date", date)
		j.untilMidway()
		p.signal(os.Kill)
		p.wait()
		j.interrupt(func(stderr *locked) {
			wait(t, "the lease being watched", func() bool { return strings.Contains(stderr.String(), "the lease is held") })
		}, "run", "JOB", "--date", date)
	})
}

// HBase whose region servers cannot be reached from here is found before
// anything is written.
func TestWrongRegionServers(t *testing.T) {
	t.Parallel()
	for name, breaking := range map[string]func(regionServers){"cut": regionServers.cut, "mute": regionServers.mute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := proxyHBase(t)
			breaking(servers)
			wrong{replace: []string{"[\"QUORUM\"]\n", "[\"QUORUM\"]\n        node_map: " + servers.nodeMap() + "\n"}, code: 3,
				says: []string{"JOB:20:9: ", "primary: ", "→ check that "}}.test(t, modern)
		})
	}
}

// A day without rows looks like a mistyped date or a load that is late: it is
// published only where the job says that it may be, and then as such: readers
// must not see the day before.
func TestNoRows(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	j.run(0)
	const empty = "2020-01-01"
	if o := j.command("run", "JOB", "--date", empty); o.code != 4 || !strings.Contains(o.stderr, "the source has no rows") || !strings.Contains(o.stderr, "allow_empty") {
		t.Errorf("%v", o)
	}
	if o := j.command("get", "JOB", "shop=1", "channel=app", "--date", empty); o.code != 3 {
		t.Errorf("an empty run was published: %v", o)
	}
	o := j.command("run", "JOB", "--date", empty, "--config-override", "verify.allow_empty=true")
	if o.code != 0 || !strings.Contains(o.stderr, "no rows in the source") || !strings.Contains(o.stdout, "published") || strings.Contains(o.stdout, "NO") {
		t.Errorf("%v", o)
	}
	if lines := j.get("shop=1", "channel=app", "--date", empty); len(lines) != 1 || lines[0].Metrics != nil {
		t.Errorf("%+v", lines)
	}
}

// What HBase refuses to create is an error of the sink, with its reason.
func TestWrongCompression(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "    row_key:", "    create: {compression: LZ4}\n    row_key:")
	j.failed(5, j.path+":22:27: ", "create table "+j.name, "lz4", "{compression: LZ4}", "→ may the user create tables")
}
