package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bothVersions runs f on the shared clusters.
func bothVersions(t *testing.T, f func(t *testing.T, c *Cluster)) {
	t.Run("26.9", func(t *testing.T) { f(t, Shared(t).ClickHouse(t)) })
	t.Run("18.16", func(t *testing.T) { f(t, Shared(t).OldClickHouse(t)) })
}

func startCluster(t *testing.T, o ClickHouseOptions) *Cluster {
	t.Helper()
	c, err := StartClickHouse(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestClusterQueriesSeeAllShards(t *testing.T) {
	bothVersions(t, func(t *testing.T, c *Cluster) {
		if !strings.HasPrefix(c.Version, strings.TrimPrefix(t.Name(), "TestClusterQueriesSeeAllShards/")) {
			t.Errorf("version is %s", c.Version)
		}
		for _, n := range c.Nodes {
			got := query(t, n, "SELECT count(), uniqExact(shard_num), sum(is_local) FROM system.clusters WHERE cluster = 'lab'")
			if got != "3\t3\t1" {
				t.Errorf("%s: nodes, shards, local = %s", n.Name, got)
			}
			if got := query(t, n, "SELECT count() FROM cluster('lab', 'system', 'one')"); got != "3" {
				t.Errorf("%s: the cluster query read %s nodes, want 3", n.Name, got)
			}
			if got := query(t, n, "SELECT port FROM system.clusters WHERE cluster = 'lab' AND is_local"); got != fmt.Sprint(n.TCPPort) {
				t.Errorf("%s: local port is %s, want %d", n.Name, got, n.TCPPort)
			}
		}
	})
}

func TestUsers(t *testing.T) {
	bothVersions(t, func(t *testing.T, c *Cluster) {
		cases := []struct {
			user, password, sql, want string
			status                    int
		}{
			{MoverUser, MoverPassword, "SELECT currentUser()", "mover\n", 200},
			{MoverUser, "wrong", "SELECT 1", "", 0},
			{ReadonlyUser, ReadonlyPassword, "SELECT value FROM system.settings WHERE name = 'readonly'", "1\n", 200},
			{ReadonlyUser, ReadonlyPassword, "CREATE DATABASE forbidden", "", 0},
		}
		for _, tc := range cases {
			sql := tc.sql
			if c.Old { // has no currentUser()
				sql = strings.Replace(sql, "currentUser()", "'mover'", 1)
			}
			status, body := postAs(t, c.Nodes[0], tc.user, tc.password, sql)
			if tc.status == 200 && (status != 200 || body != tc.want) || tc.status == 0 && status == 200 {
				t.Errorf("%s/%s: %s: status %d, %q", tc.user, tc.password, sql, status, body)
			}
		}
	})
}

func postAs(t *testing.T, n *Node, user, password, sql string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+n.HTTPAddr(), strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestQueryReportsExceptions(t *testing.T) {
	bothVersions(t, func(t *testing.T, c *Cluster) {
		for _, sql := range []string{
			"SELEC 1",
			"SELECT * FROM nowhere.at_all",
			// Fails after a good part of the result was made.
			"SELECT throwIf(number = 300000) FROM numbers(400000)",
		} {
			if out, err := c.Nodes[0].Query(t.Context(), sql); err == nil {
				t.Errorf("%s: no error, %d bytes", sql, len(out))
			}
		}
	})
	// A result whose beginning went out under status 200 before it failed.
	bothVersions(t, func(t *testing.T, c *Cluster) {
		sql := "SELECT number, throwIf(number = 3000000) FROM numbers(4000000)"
		out, err := c.Nodes[0].post(t.Context(), nil, strings.NewReader(sql))
		if err == nil {
			t.Errorf("an exception at the end of a result was not seen in %d bytes", len(out))
		}
		t.Log(abbreviate(fmt.Sprint(err)))
	})
}

func TestFailedStartShowsTheLog(t *testing.T) {
	for name, old := range map[string]bool{"26.9": false, "18.16": true} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := StartClickHouse(ctx, ClickHouseOptions{Old: old, Shards: 2, UsersXML: []string{"<users><broken>"}})
			if err == nil || !strings.Contains(err.Error(), "users.d") {
				t.Errorf("the error does not show what the server logged: %v", err)
			}
			if left := processesOf(t, tmp); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
			if dirs, _ := filepath.Glob(filepath.Join(tmp, tempPrefix+"*")); len(dirs) > 0 {
				t.Errorf("left behind: %v", dirs)
			}
		})
	}
}

func TestNodeFaults(t *testing.T) {
	for name, old := range map[string]bool{"26.9": false, "18.16": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, ClickHouseOptions{Old: old, Shards: 2})
			n := c.Nodes[1]
			must(t, n.Exec(t.Context(), "CREATE DATABASE d"))
			must(t, n.Exec(t.Context(), "CREATE TABLE d.t (x UInt64) ENGINE = MergeTree ORDER BY x"))
			must(t, n.Exec(t.Context(), "INSERT INTO d.t SELECT number FROM numbers(1000)"))

			tcp, pid := n.TCPAddr(), n.PID()
			must(t, n.Kill())
			wantDown(t, n)
			must(t, n.Restart(t.Context()))
			if n.TCPAddr() != tcp || n.PID() == pid || !n.Running() {
				t.Errorf("after a restart: address %s (was %s), pid %d (was %d)", n.TCPAddr(), tcp, n.PID(), pid)
			}
			if got := query(t, n, "SELECT sum(x) FROM d.t"); got != "499500" {
				t.Errorf("after SIGKILL and restart the sum is %s", got)
			}
			if got := query(t, c.Nodes[0], "SELECT count() FROM cluster('lab', 'system', 'one')"); got != "2" {
				t.Errorf("the cluster has %s nodes after a restart", got)
			}
			must(t, n.Stop(t.Context()))
			wantDown(t, n)
			must(t, n.Restart(t.Context()))

			must(t, n.Pause())
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := n.Query(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a paused node: %v", err)
			}
			must(t, n.Resume())
			if got := query(t, n, "SELECT sum(x) FROM d.t"); got != "499500" {
				t.Errorf("after resuming the sum is %s", got)
			}
		})
	}
}

func TestClosedPort(t *testing.T) {
	c := startCluster(t, ClickHouseOptions{Shards: 1})
	n := c.Nodes[0]
	must(t, n.StopListen(t.Context(), "TCP"))
	eventually(t, 5*time.Second, func() error {
		if dial(t.Context(), n.TCPAddr()) == nil {
			return errors.New("the port still takes connections")
		}
		return nil
	})
	must(t, n.StartListen(t.Context(), "TCP"))
	must(t, dial(t.Context(), n.TCPAddr()))
	old := &Node{Server: &Server{Name: "old"}, old: true}
	if err := old.StopListen(t.Context(), "TCP"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("18.16: %v", err)
	}
}

func TestExtraConfiguration(t *testing.T) {
	c := startCluster(t, ClickHouseOptions{Shards: 1, UsersXML: []string{
		"<profiles><tight><max_rows_to_read>7</max_rows_to_read></tight></profiles>" +
			"<users><poor><password>p</password><networks><ip>127.0.0.1</ip></networks><profile>tight</profile><quota>default</quota></poor></users>",
	}, ConfigXML: []string{"<macros><color>red</color></macros>"}})
	if status, body := postAs(t, c.Nodes[0], "poor", "p", "SELECT count() FROM numbers(100)"); status == 200 {
		t.Errorf("the profile does not hold: %s", body)
	}
	if got := query(t, c.Nodes[0], "SELECT getMacro('color')"); got != "red" {
		t.Errorf("macro is %q", got)
	}
}

func TestReplicas(t *testing.T) {
	for name, old := range map[string]bool{"26.9": false, "18.16": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, ClickHouseOptions{Old: old, Shards: 2, Replicas: 2})
			must(t, LoadTraffic(t.Context(), c, "d", TrafficOptions{Rows: 10_000}))
			for _, n := range c.Nodes {
				if got := query(t, n, "SELECT count() FROM d.traffic_local"); got != "5000" {
					t.Errorf("%s has %s rows", n.Name, got)
				}
			}
			if old { // a row written to one replica reaches the other
				must(t, c.Nodes[1].Exec(t.Context(), "INSERT INTO d.traffic_local (shop_id) VALUES (0)"))
				eventually(t, 10*time.Second, func() error {
					if got := query(t, c.Nodes[0], "SELECT count() FROM d.traffic_local WHERE shop_id = 0"); got != "1" {
						return fmt.Errorf("replica 1 has %s of the rows written to replica 2", got)
					}
					return nil
				})
				return
			}
			must(t, c.Nodes[1].Kill())
			if got := query(t, c.Nodes[3], "SELECT count() FROM d.traffic"); got != "10000" {
				t.Errorf("with one replica dead the cluster has %s rows", got)
			}
		})
	}
}

func wantDown(t *testing.T, n *Node) {
	t.Helper()
	if n.Running() {
		t.Errorf("%s still runs", n.Name)
	}
	if err := dial(t.Context(), n.TCPAddr()); err == nil {
		t.Errorf("%s still takes connections", n.Name)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
