package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
)

func TestHBaseServes(t *testing.T) {
	h := Shared(t).HBase(t)
	table := newTable(t, h, fmt.Sprintf("lab_serves_%d", time.Now().UnixNano()))
	table.put("a", "1")
	if got := table.get("a"); got != "1" {
		t.Errorf("read back %q", got)
	}
	if err := h.Master.Kill(); !errors.Is(err, ErrShared) {
		t.Errorf("killing a shared HBase: %v", err)
	}
	if err := h.Stop(); !errors.Is(err, ErrShared) {
		t.Errorf("stopping a shared HBase: %v", err)
	}
}

// TestHBaseAdmin: a split, a move and a compaction leave the rows, and an order
// that cannot be carried out is an error.
func TestHBaseAdmin(t *testing.T) {
	h := Shared(t).HBase(t)
	table := newTable(t, h, fmt.Sprintf("lab_admin_%d", time.Now().UnixNano()))
	table.put("a", "1")
	table.put("b", "2")
	must(t, h.Admin(t.Context(), "split", table.name, "b", "move", table.name, "b", "flush", table.name, "major_compact", table.name))
	for key, want := range map[string]string{"a": "1", "b": "2"} {
		if got := table.get(key); got != want {
			t.Errorf("%s reads %q, want %q", key, got, want)
		}
	}
	if err := h.Admin(t.Context(), "flush", "lab_no_such_table"); err == nil {
		t.Error("a table that does not exist was flushed")
	}
}

func TestSplitHBaseSurvivesARegionServer(t *testing.T) {
	t.Parallel()
	h, err := StartHBase(t.Context(), HBaseOptions{Split: true, Heap: "512m", SessionTimeout: 6 * time.Second,
		Properties: map[string]string{"hbase.hregion.memstore.flush.size": "2097152"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	table := newTable(t, h, "lab_split")
	keys := strings.Split("b g l q v", " ")
	for _, k := range keys {
		table.put(k, k)
	}
	must(t, h.RegionServers[0].Pause())
	must(t, h.RegionServers[0].Resume())
	must(t, h.RegionServers[0].Kill())
	for _, k := range keys { // also those that lay on the dead server
		if got := table.get(k); got != k {
			t.Errorf("after the death of a region server %s reads %q", k, got)
		}
	}
	must(t, h.RegionServers[0].Restart(t.Context()))
	must(t, h.RegionServers[1].Stop(t.Context()))
	table.put("m", "m")
	if got := table.get("m"); got != "m" {
		t.Errorf("after the other one stopped: %q", got)
	}
}

// hbaseTable is a table of one test.
type hbaseTable struct {
	t      *testing.T
	name   string
	client gohbase.Client
}

func newTable(t *testing.T, h *HBase, name string) hbaseTable {
	t.Helper()
	quiet := gohbase.Logger(slog.New(slog.DiscardHandler))
	admin := gohbase.NewAdminClient(h.Quorum(), gohbase.ZookeeperRoot(h.ZNode()), quiet)
	splits := [][]byte{[]byte("f"), []byte("k"), []byte("p"), []byte("u")}
	create := hrpc.NewCreateTable(t.Context(), []byte(name), map[string]map[string]string{"f": nil}, hrpc.SplitKeys(splits))
	if err := admin.CreateTable(create); err != nil {
		t.Fatal(err)
	}
	client := gohbase.NewClient(h.Quorum(), gohbase.ZookeeperRoot(h.ZNode()), quiet)
	t.Cleanup(client.Close)
	return hbaseTable{t, name, client}
}

func (h hbaseTable) put(key, value string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	put, err := hrpc.NewPutStr(ctx, h.name, key, map[string]map[string][]byte{"f": {"q": []byte(value)}})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.client.Put(put); err != nil {
		h.t.Fatal(fmt.Errorf("put %s: %w", key, err))
	}
}

func (h hbaseTable) get(key string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	get, err := hrpc.NewGetStr(ctx, h.name, key)
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := h.client.Get(get)
	if err != nil {
		h.t.Fatal(fmt.Errorf("get %s: %w", key, err))
	}
	if len(got.Cells) == 0 {
		return ""
	}
	return string(got.Cells[0].Value)
}
