package mover_test

import (
	"os"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// A dry run counts the rows and bytes that the run itself then writes, and
// leaves nothing anywhere.
func TestDryRun(t *testing.T) {
	c := servers[0].loaded(t)
	j := load(t, c, "../../examples/traffic.yaml", "source.table="+database+".traffic", "periods.0=DAY",
		"limits.max_memory_usage=2GB", "limits.max_bytes_before_external_group_by=1GB")
	dropAfter(t, j)
	m := newMover(t, j, "2026-11-29")
	m.DryRun = true
	counted, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hb := client(t, j)
	if table, err := hb.Table(t.Context(), j.HBase.Table); err != nil || table != nil {
		t.Errorf("a dry run left the table %v, %v", table, err)
	}
	for _, key := range []string{"lease/" + j.Name + "/2026-11-29", "clock/" + j.HBase.Table, "plan/" + j.Name + "/2026-11-29"} {
		if row, err := hb.Get(t.Context(), ledger.Table, []byte(key), 0, 0); err != nil || len(row.Cells) > 0 {
			t.Errorf("a dry run left %q in the ledger: %v, %v", key, row, err)
		}
	}
	written, err := newMover(t, j, "2026-11-29").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counted.State != report.Counted || !counted.DryRun || written.DryRun {
		t.Errorf("the dry run's state is %q", counted.State)
	}
	a, b := counted.Totals, written.Totals
	if a.RowsWritten != b.RowsWritten || a.Cells != b.Cells || a.Bytes != b.Bytes || a.RowsWritten == 0 {
		t.Errorf("the dry run counted %+v, the run wrote %+v", a, b)
	}
}

func TestDryRunOfFiles(t *testing.T) {
	c := servers[0].loaded(t)
	dir := t.TempDir()
	m := newMover(t, fileJob(t, c, "{path: '"+dir+"/deep/x.parquet'}"), "2026-11-29")
	m.DryRun = true
	r, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a dry run left %v, %v", left, err)
	}
	if r.Totals.RowsWritten == 0 || r.Totals.Bytes == 0 {
		t.Errorf("counted %+v", r.Totals)
	}
}
