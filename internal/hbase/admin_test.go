package hbase

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A table in a namespace that is not there yet is made, with all that is said
// about its family; it is found, written, read, counted and dropped.
func TestNamespace(t *testing.T) {
	c := dialLab(t)
	name := fmt.Sprintf("ns_%d:t", time.Now().UnixNano())
	if table, err := c.Table(t.Context(), name); table != nil || err != nil {
		t.Fatalf("in no namespace there is %v, %v", table, err)
	}
	spec := TableSpec{Name: name, Family: "f", Splits: [][]byte{[]byte("m")}, Create: job.Create{
		Versions: 3, Compression: "GZ", TTL: time.Hour, Bloom: "ROWCOL", BlockEncoding: "FAST_DIFF", BlockSize: 32 << 10,
	}}
	for range 2 { // somebody else may have been first
		if err := c.CreateTable(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	table, err := c.Table(t.Context(), name)
	if err != nil || table == nil || !table.Enabled {
		t.Fatal(table, err)
	}
	got := map[string]string{}
	for key := range spec.Attributes() {
		got[key] = table.Families["f"][key]
	}
	want := map[string]string{"VERSIONS": "3", "COMPRESSION": "GZ", "TTL": "3600", "BLOOMFILTER": "ROWCOL", "DATA_BLOCK_ENCODING": "FAST_DIFF", "BLOCKSIZE": "32768"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if regions, err := c.Regions(t.Context(), name); err != nil || len(regions) != 2 {
		t.Errorf("%v, %v", regions, err)
	}
	fill(t, c, name, 2, base)
	if n, err := c.ScanKeys(t.Context(), name, base, base+1, 2, func([]byte) error { return nil }); n != 2 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	if row, err := c.Get(t.Context(), name, []byte("row-000001"), 0, 0); err != nil || len(row.Cells) == 0 {
		t.Errorf("%v, %v", row, err)
	}
	if err := c.DropTable(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if table, err := c.Table(t.Context(), name); table != nil || err != nil {
		t.Errorf("dropped, and there is %v, %v", table, err)
	}
	// The namespace is there now, the codec is not.
	spec.Create.Compression = "LZ9"
	if err := c.CreateTable(t.Context(), spec); failure.ClassOf(err) == 0 || failure.ClassOf(err) == failure.Preflight {
		t.Errorf("a table with no such compression: %v", err)
	}
}
