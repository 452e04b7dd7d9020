package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// base is a timestamp that no TTL makes old.
var base = time.Now().UnixMilli()

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func cluster(t testing.TB) job.HBaseCluster {
	h := lab.Shared(t).HBase(t)
	return job.HBaseCluster{Name: "lab", ZooKeeper: []string{h.Quorum()}, ZNode: h.ZNode()}
}

func dialLab(t testing.TB) *Client {
	t.Helper()
	c, err := Dial(t.Context(), cluster(t), quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newTable makes a table with family f for one test.
func newTable(t testing.TB, c *Client, splits ...string) string {
	t.Helper()
	name := fmt.Sprintf("hbase_%d", time.Now().UnixNano())
	spec := TableSpec{Name: name, Family: "f", Create: job.Create{Versions: 2, Compression: "NONE", TTL: 90 * 24 * time.Hour}}
	for _, s := range splits {
		spec.Splits = append(spec.Splits, []byte(s))
	}
	if err := c.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.DropTable(ctx, name); err != nil && !errors.Is(err, gohbase.TableNotFound) {
			t.Log(err)
		}
	})
	return name
}

// fill puts n rows of one cell with keys row-000000 and so on.
func fill(t testing.TB, c *Client, table string, n int, timestamp int64) {
	t.Helper()
	p, sender := NewPuts("f", []string{"q"}, timestamp), c.NewSender(table, SendOptions{Timeout: time.Minute})
	for i := range n {
		p.BeginRow(fmt.Appendf(nil, "row-%06d", i))
		p.EndCell(0, append(p.Cell(0), "value"...))
		p.EndRow()
		if p.Rows() == 1000 || i == n-1 {
			if err := p.Seal(); err != nil {
				t.Fatal(err)
			}
			if err := sender.Send(t.Context(), p); err != nil || p.Pending() != 0 {
				t.Fatal(err)
			}
			p.Reset()
		}
	}
}

func TestTable(t *testing.T) {
	c := dialLab(t)
	if table, err := c.Table(t.Context(), "no_such_table"); table != nil || err != nil {
		t.Errorf("a table that is not there: %v, %v", table, err)
	}
	name := newTable(t, c, "row-000100", "row-000200")
	table, err := c.Table(t.Context(), name)
	if err != nil || table == nil {
		t.Fatal(table, err)
	}
	f := table.Families["f"]
	if !table.Enabled || f["VERSIONS"] != "2" || f["TTL"] != "7776000" || f["BLOOMFILTER"] != "ROW" {
		t.Errorf("%+v", table)
	}
	regions, err := c.Regions(t.Context(), name)
	if err != nil || len(regions) != 3 || string(regions[1].Start) != "row-000100" || string(regions[1].End) != "row-000200" || regions[0].Server == "" {
		t.Errorf("%+v, %v", regions, err)
	}
	if err := c.CreateTable(t.Context(), TableSpec{Name: name, Family: "f"}); err != nil {
		t.Errorf("creating it again: %v", err)
	}
	if err := c.DisableTable(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if enabled, err := c.Enabled(t.Context(), name); enabled || err != nil {
		t.Errorf("a disabled table is enabled: %v, %v", enabled, err)
	}
	if err := c.EnableTable(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Regions(t.Context(), "no_such_table"); failure.ClassOf(err) != failure.Sink {
		t.Errorf("regions of a table that is not there: %v", err)
	}
}

func TestReadAndWrite(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c)
	ctx := t.Context()
	for ts, v := range []string{"", "old", "new"} {
		if ts == 0 {
			continue
		}
		if err := c.Put(ctx, name, []byte("k1"), "f", map[string][]byte{"q": []byte(v)}, base+int64(ts)*10); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		since, until int64
		want         string
	}{{0, 0, "new"}, {base + 10, base + 11, "old"}, {base + 20, base + 21, "new"}, {0, base + 20, "old"}, {base + 21, base + 30, ""}} {
		row, err := c.Get(ctx, name, []byte("k1"), tt.since, tt.until)
		v, ok := row.Value("f", "q")
		if err != nil || string(v) != tt.want || ok != (tt.want != "") {
			t.Errorf("[%d, %d): %q, %v, %v", tt.since, tt.until, v, ok, err)
		}
	}
	first, err := c.CheckAndPut(ctx, name, []byte("k2"), "f", "q", nil, map[string][]byte{"q": []byte("a")})
	second, err2 := c.CheckAndPut(ctx, name, []byte("k2"), "f", "q", nil, map[string][]byte{"q": []byte("b")})
	third, err3 := c.CheckAndPut(ctx, name, []byte("k2"), "f", "q", []byte("a"), map[string][]byte{"q": []byte("c")})
	repeated, err4 := c.CheckAndPut(ctx, name, []byte("k2"), "f", "q", []byte("a"), map[string][]byte{"q": []byte("c")})
	if !first || second || !third || !repeated || errors.Join(err, err2, err3, err4) != nil {
		t.Errorf("CheckAndPut: %v %v %v %v, %v", first, second, third, repeated, errors.Join(err, err2, err3, err4))
	}
	var keys []string
	err = c.ScanRows(ctx, name, []byte("k"), func(r Row) error {
		v, _ := r.Value("f", "q")
		keys = append(keys, string(r.Key)+"="+string(v))
		return nil
	})
	if want := []string{"k1=new", "k2=c"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v", keys, err)
	}
	if _, err := c.Get(ctx, "no_such_table", []byte("k"), 0, 0); failure.ClassOf(err) != failure.Sink {
		t.Errorf("a table that is not there: %v", err)
	}
	err = c.Put(ctx, name, []byte("k"), "g", map[string][]byte{"q": nil}, 0)
	if failure.ClassOf(err) != failure.Sink || !strings.Contains(err.Error(), "NoSuchColumnFamily") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a family that is not there: %v", err)
	}
}

func TestScanKeys(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c, "row-010000", "row-020000", "row-025000")
	fill(t, c, name, 30000, base+100)
	fill(t, c, name, 10000, base+200)
	for _, tt := range []struct {
		since, until, want int64
		workers            int
	}{{0, 0, 30000, 1}, {base + 100, base + 101, 30000, 4}, {base + 200, base + 201, 10000, 2}, {base + 300, base + 400, 0, 4}} {
		var mu sync.Mutex
		seen := map[string]int{}
		n, err := c.ScanKeys(t.Context(), name, tt.since, tt.until, tt.workers, func(key []byte) error {
			mu.Lock()
			defer mu.Unlock()
			seen[string(key)]++
			return nil
		})
		if err != nil || n != tt.want || int64(len(seen)) != tt.want {
			t.Errorf("[%d, %d): %d rows, %d keys, %v", tt.since, tt.until, n, len(seen), err)
		}
	}
	stop := errors.New("enough")
	if _, err := c.ScanKeys(t.Context(), name, 0, 0, 2, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of fn: %v", err)
	}
}

// TestScanResumes: the region moves to another server in the middle of a scan
// whose requests are small, again and again; each key is seen once.
func TestScanResumes(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c)
	fill(t, c, name, 20000, base)
	regions, err := c.Regions(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	encoded := strings.Split(strings.TrimSuffix(regions[0].Name, "."), ".")
	seen, moves := map[string]int{}, 0
	scan := rangeScan{table: name, options: []func(hrpc.Call) error{hrpc.NumberOfRows(500)}}
	err = c.scan(t.Context(), scan, func(r hrpc.ResultV2) error {
		seen[string(r.Cells[0].Row())]++
		if len(seen)%5000 != 0 {
			return nil
		}
		moves++
		return c.admin(t.Context(), "move", callTimeout, func(ctx context.Context, m master) error {
			move, err := hrpc.NewMoveRegion(ctx, []byte(encoded[len(encoded)-1]))
			if err != nil {
				return err
			}
			return m.rpc.(gohbase.AdminClient).MoveRegion(move)
		})
	})
	if err != nil || len(seen) != 20000 || moves != 4 {
		t.Errorf("%d keys, %d moves, %v", len(seen), moves, err)
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", k, n)
		}
	}
}

// TestOnceCall: the second attempt of a request to an open scanner is not sent.
func TestOnceCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scan, err := hrpc.NewScan(ctx, []byte("t"))
	if err != nil {
		t.Fatal(err)
	}
	call := &onceCall{Scan: scan, cancel: cancel}
	call.SetRegion(nil)
	if call.Context().Err() != nil {
		t.Error("the first attempt is not sent")
	}
	call.SetRegion(nil)
	if call.Context().Err() == nil {
		t.Error("the second attempt is sent")
	}
}

// TestDialRefuses: each thing that is wrong is named, within the time.
func TestDialRefuses(t *testing.T) {
	good := cluster(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	free.Close()
	for name, tt := range map[string]struct {
		change func(*job.HBaseCluster)
		want   string
	}{
		"no ZooKeeper":   {func(c *job.HBaseCluster) { c.ZooKeeper = []string{nobody} }, "no ZooKeeper at " + nobody},
		"mute ZooKeeper": {func(c *job.HBaseCluster) { c.ZooKeeper = []string{mute.Addr().String()} }, "does not answer as ZooKeeper does"},
		"wrong znode":    {func(c *job.HBaseCluster) { c.ZNode = "/hbase-unsecure" }, "no HBase registered under znode /hbase-unsecure"},
		"unknown host":   {func(c *job.HBaseCluster) { c.NodeMap = map[string]string{"localhost": "no-such-host.invalid"} }, "host name no-such-host.invalid does not resolve"},
		"unreachable":    {func(c *job.HBaseCluster) { c.NodeMap = map[string]string{"localhost": nobody} }, "no region server can be reached"},
		"mute server":    {func(c *job.HBaseCluster) { c.NodeMap = map[string]string{"localhost": mute.Addr().String()} }, "HBase does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := good
			tt.change(&bad)
			start := time.Now()
			c, err := Dial(t.Context(), bad, quiet())
			if err == nil {
				c.Close()
			}
			if failure.ClassOf(err) != failure.Preflight || !strings.Contains(err.Error(), tt.want) || failure.Remedy(err) == "" {
				t.Errorf("%v → %s", err, failure.Remedy(err))
			}
			if took := time.Since(start); took > 12*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestCloseLeaksNothing counts goroutines.
func TestCloseLeaksNothing(t *testing.T) {
	name := newTable(t, dialLab(t))
	before := runtime.NumGoroutine()
	for range 3 {
		c, err := Dial(t.Context(), cluster(t), quiet())
		if err != nil {
			t.Fatal(err)
		}
		fill(t, c, name, 10, base)
		if _, err := c.Table(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		var b bytes.Buffer
		buf := make([]byte, 1<<16)
		b.Write(buf[:runtime.Stack(buf, true)])
		t.Errorf("%d goroutines before, %d after\n%s", before, after, b.String())
	}
}

func TestAfterPrefix(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "", "ab": "ac"} {
		if got := string(afterPrefix([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestMapAddress(t *testing.T) {
	m := map[string]string{"a": "10.0.0.1", "b:16020": "127.0.0.1:1", "c": "d:2"}
	for in, want := range map[string]string{"a:16020": "10.0.0.1:16020", "b:16020": "127.0.0.1:1", "b:3": "b:3", "c:9": "d:2"} {
		if got := job.MapAddress(m, in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestDialInterrupted: a signal during the checks is no problem of the cluster.
func TestDialInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := Dial(ctx, cluster(t), quiet())
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, context.Canceled) || !failure.IsTransient(err) {
		t.Error(err)
	}
}
