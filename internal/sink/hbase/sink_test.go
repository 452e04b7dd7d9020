package hbase_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	hbasesink "github.com/ck2hbase/ck2hbase/internal/sink/hbase"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func dial(t testing.TB, nodeMap map[string]string) *hbase.Client {
	t.Helper()
	h := lab.Shared(t).HBase(t)
	c, err := hbase.Dial(t.Context(), job.HBaseCluster{Name: "lab", ZooKeeper: []string{h.Quorum()}, ZNode: h.ZNode(), NodeMap: nodeMap}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// config makes a table of four regions and the sink's configuration for it.
func config(t testing.TB, c *hbase.Client, f sinktest.Fixture) hbasesink.Config {
	t.Helper()
	name := fmt.Sprintf("sink_%d", time.Now().UnixNano())
	if err := c.CreateTable(t.Context(), hbase.TableSpec{Name: name, Family: "f", Create: job.Create{Versions: 1}, Splits: f.Keys.Splits(4)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.DropTable(ctx, name); err != nil && !errors.Is(err, gohbase.TableNotFound) {
			t.Log(err)
		}
	})
	return hbasesink.Config{Client: c, Table: name, Family: "f", Columns: f.Columns, Keys: f.Keys, Cells: f.Cells,
		Timestamp: time.Now().UnixMilli(), Batch: job.Batch{Rows: 200, Bytes: 1 << 20, InFlight: 3}, Log: quiet()}
}

func open(t testing.TB, c hbasesink.Config) *hbasesink.Sink {
	t.Helper()
	s, err := hbasesink.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read gives the table's rows.
func read(t *testing.T, c *hbase.Client, table string) map[string]map[string][]byte {
	t.Helper()
	out := map[string]map[string][]byte{}
	err := c.ScanRows(t.Context(), table, nil, func(r hbase.Row) error {
		cells := map[string][]byte{}
		for _, cell := range r.Cells {
			cells[cell.Qualifier] = cell.Value
		}
		out[string(r.Key)] = cells
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestConformance(t *testing.T) {
	c := dial(t, nil)
	sinktest.Run(t, func(t *testing.T, f sinktest.Fixture) sinktest.Target {
		cfg := config(t, c, f)
		return sinktest.Target{Sink: open(t, cfg), Read: func(t *testing.T) map[string]map[string][]byte { return read(t, c, cfg.Table) }}
	})
}

// write writes rows as one slice and gives the first error.
func write(t *testing.T, s *hbasesink.Sink, f sinktest.Fixture, from, to int) error {
	t.Helper()
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	writeErr := w.Write(t.Context(), sinktest.Rows(from, to))
	_, err = w.Commit(t.Context())
	if writeErr != nil && err == nil {
		t.Errorf("Commit is fine after Write failed: %v", writeErr)
	}
	return err
}

// TestPermanentErrors: they end the slice at once and carry advice.
func TestPermanentErrors(t *testing.T) {
	c := dial(t, nil)
	f := sinktest.NewFixture(t)
	disabled := config(t, c, f)
	if err := c.DisableTable(t.Context(), disabled.Table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that it can be dropped
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.EnableTable(ctx, disabled.Table); err != nil {
			t.Error(err)
		}
	})
	for name, tt := range map[string]struct {
		config hbasesink.Config
		change func(*hbasesink.Config)
		want   string
	}{
		"no family": {config(t, c, f), func(c *hbasesink.Config) { c.Family = "g" }, "NoSuchColumnFamily"},
		"no table":  {config(t, c, f), func(c *hbasesink.Config) { c.Table = "no_such_table" }, "table not found"},
		"disabled":  {disabled, func(*hbasesink.Config) {}, "disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.change(&tt.config)
			start := time.Now()
			err := write(t, open(t, tt.config), f, 0, 1000)
			if failure.ClassOf(err) != failure.Sink || failure.Remedy(err) == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v → %s", err, failure.Remedy(err))
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// proxied gives a client whose region servers are reached through proxies that
// the test can break.
func proxied(t *testing.T, table string) (*hbase.Client, []*lab.NetProxy) {
	t.Helper()
	regions, err := dial(t, nil).Regions(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	nodes, proxies := map[string]string{}, []*lab.NetProxy{}
	servers := []string{}
	meta, err := dial(t, nil).Regions(t.Context(), "hbase:meta")
	if err != nil && failure.ClassOf(err) != failure.Sink {
		t.Fatal(err)
	}
	for _, r := range append(regions, meta...) {
		servers = append(servers, r.Server)
	}
	for _, server := range servers {
		if _, known := nodes[server]; known {
			continue
		}
		_, port, err := net.SplitHostPort(server)
		if err != nil {
			t.Fatal(err)
		}
		p := lab.Proxy(t, net.JoinHostPort("127.0.0.1", port))
		nodes[server] = p.Addr()
		proxies = append(proxies, p)
	}
	return dial(t, nodes), proxies
}

// TestConnectionsBreak: the connections to the region servers are cut again
// and again while rows are written; none is lost and none doubled.
func TestConnectionsBreak(t *testing.T) {
	f := sinktest.NewFixture(t)
	direct := dial(t, nil)
	cfg := config(t, direct, f)
	c, proxies := proxied(t, cfg.Table)
	cfg.Client, cfg.Batch.Rows, cfg.Attempt = c, 50, 3*time.Second
	s := open(t, cfg)
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := w.Write(t.Context(), sinktest.Rows(i*200, (i+1)*200)); err != nil {
			t.Fatal(err)
		}
		if i%5 == 2 {
			for _, p := range proxies {
				p.Disable()
				p.Enable()
			}
		}
	}
	ack, err := w.Commit(t.Context())
	if _, want := f.Want(t, 0, 4000); err != nil || ack != want {
		t.Errorf("acknowledged %+v, want %+v, %v", ack, want, err)
	}
	want, _ := f.Want(t, 0, 4000)
	if got := read(t, direct, cfg.Table); len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

// TestRegionsMove: regions go to other servers while rows are written.
func TestRegionsMove(t *testing.T) {
	f := sinktest.NewFixture(t)
	c := dial(t, nil)
	cfg := config(t, c, f)
	cfg.Batch.Rows = 50
	s := open(t, cfg)
	admin := gohbase.NewAdminClient(lab.Shared(t).HBase(t).Quorum(), gohbase.Logger(quiet()))
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := w.Write(t.Context(), sinktest.Rows(i*200, (i+1)*200)); err != nil {
			t.Fatal(err)
		}
		if i != 7 {
			continue
		}
		regions, err := c.Regions(t.Context(), cfg.Table)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range regions {
			parts := strings.Split(strings.TrimSuffix(r.Name, "."), ".")
			move, err := hrpc.NewMoveRegion(t.Context(), []byte(parts[len(parts)-1]))
			if err == nil {
				err = admin.MoveRegion(move)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ack, err := w.Commit(t.Context())
	rows, want := f.Want(t, 0, 4000)
	if err != nil || ack != want {
		t.Errorf("acknowledged %+v, want %+v, %v", ack, want, err)
	}
	if got := read(t, c, cfg.Table); !cmp.Equal(got, rows) {
		t.Errorf("%d rows, want %d, or other cells", len(got), len(rows))
	}
}

// TestHBaseGone: with the region servers out of reach the slice fails as
// transient within the sink's patience, and Close does not wait.
func TestHBaseGone(t *testing.T) {
	f := sinktest.NewFixture(t)
	cfg := config(t, dial(t, nil), f)
	c, proxies := proxied(t, cfg.Table)
	cfg.Client, cfg.Patience, cfg.Attempt = c, 4*time.Second, time.Second
	s := open(t, cfg)
	if err := write(t, s, f, 0, 100); err != nil {
		t.Fatal(err)
	}
	for _, p := range proxies {
		p.Disable()
	}
	start := time.Now()
	err := write(t, s, f, 100, 2000)
	if !failure.IsTransient(err) || err == nil {
		t.Errorf("class %d: %v", failure.ClassOf(err), err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.InFlight != 0 || st.Rows < 100 || st.Retries == 0 {
		t.Errorf("%+v", st)
	}
}

// TestAbortWhileGone: Abort of a writer that waits for HBase returns at once.
func TestAbortWhileGone(t *testing.T) {
	f := sinktest.NewFixture(t)
	cfg := config(t, dial(t, nil), f)
	c, proxies := proxied(t, cfg.Table)
	cfg.Client = c
	s := open(t, cfg)
	for _, p := range proxies {
		p.Disable()
	}
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), sinktest.Rows(0, 400)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w.Abort()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestConfig(t *testing.T) {
	f := sinktest.NewFixture(t)
	if _, err := hbasesink.New(hbasesink.Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
	_, err := hbasesink.New(hbasesink.Config{Client: &hbase.Client{}, Table: "t", Family: "f", Columns: []string{"a", "a"}, Keys: f.Keys, Cells: f.Cells, Timestamp: 1, Log: quiet()})
	if failure.ClassOf(err) != failure.Usage {
		t.Errorf("two metrics for one column: %v", err)
	}
}

// TestBatchesAreCapped: no batch has more rows or bytes than it may, however
// many come at once.
func TestBatchesAreCapped(t *testing.T) {
	f := sinktest.NewFixture(t)
	c := dial(t, nil)
	for name, tc := range map[string]struct {
		batch job.Batch
		least int64 // batches of 2000 rows
	}{
		"rows": {job.Batch{Rows: 100, Bytes: 1 << 20}, 20},
		// A row takes more than 40 bytes: its key, two values and qualifiers.
		"bytes": {job.Batch{Rows: 5000, Bytes: 4 << 10}, 2000 * 40 / (4 << 10)},
	} {
		conf := config(t, c, f)
		conf.Batch = tc.batch
		s := open(t, conf)
		w, err := s.Writer(t.Context(), f.Slice(0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), sinktest.Rows(0, 2000)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Batches; n < tc.least {
			t.Errorf("%s: %d batches, want %d or more", name, n, tc.least)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
