package mover_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A table in a new namespace, with keys that have no salt: its regions share the
// rows. What is there is never altered, and said to be other than the file says.
func TestTableIsMadeAndCompared(t *testing.T) {
	c := servers[0].loaded(t)
	name := unique(t, "ns")
	table := name + ":t"
	overrides := []string{
		"name=" + name, "sink.hbase.table=" + table, "source.table=" + database + ".traffic", "limits.max_memory_usage=2GB",
		"limits.max_bytes_before_external_group_by=1GB", "sink.hbase.row_key={shop_id:010}|{first_source:esc}|{tp}|{date}", "sink.hbase.create.bloom=NONE",
	}
	load := func(more ...string) *job.Job {
		return loadWithoutSalt(t, c, append(slices.Clone(overrides), more...)...)
	}
	j := load("sink.hbase.create.compression=GZ")
	dropAfter(t, j)
	result, err := newMover(t, j, "2026-11-29").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Notes) > 0 {
		t.Errorf("a new table: %q", result.Notes)
	}
	hb := client(t, j)
	regions, err := hb.Regions(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	rows := tableOf(t, j)
	if len(regions) < 8 || len(rows) < 20_000 {
		t.Fatalf("%d regions of %d rows", len(regions), len(rows))
	}
	for _, r := range regions {
		n := 0
		for key := range rows {
			if bytes.Compare([]byte(key), r.Start) >= 0 && (len(r.End) == 0 || bytes.Compare([]byte(key), r.End) < 0) {
				n++
			}
		}
		if share := float64(n) / float64(len(rows)); share < 0.08 || share > 0.18 {
			t.Errorf("the region from %q on has %.3f of the rows", r.Start, share)
		}
	}
	before, err := hb.Table(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if result, err = newMover(t, load("sink.hbase.create.compression=SNAPPY"), "2026-11-29").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(result.Notes, "\n")
	if len(result.Notes) != 1 || !strings.Contains(all, "COMPRESSION is GZ, where the job file says SNAPPY") {
		t.Errorf("notes: %s", all)
	}
	after, err := hb.Table(t.Context(), table)
	if err != nil || after.Families["f"]["COMPRESSION"] != before.Families["f"]["COMPRESSION"] || after.Families["f"]["BLOOMFILTER"] != "NONE" {
		t.Errorf("the table is now %v, %v", after, err)
	}
}

// One region that would take all the rows is a note.
func TestHotRegionIsNoted(t *testing.T) {
	c := servers[0].loaded(t)
	overrides := []string{"source.table=" + database + ".traffic", "limits.max_memory_usage=2GB", "limits.max_bytes_before_external_group_by=1GB"}
	for name, j := range map[string]*job.Job{
		"salted":   load(t, c, "../../examples/traffic.yaml", overrides...),
		"unsalted": loadWithoutSalt(t, c, append(overrides, "sink.hbase.row_key={shop_id:010}|{first_source:esc}|{tp}|{date}")...),
	} {
		dropAfter(t, j)
		if err := client(t, j).CreateTable(t.Context(), hbase.TableSpec{Name: j.HBase.Table, Family: "f", Create: job.Create{Versions: 2}}); err != nil {
			t.Fatal(err)
		}
		result, err := newMover(t, j, "2026-11-29").Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "would take 100 % of the rows") {
			t.Errorf("%s: notes: %q", name, result.Notes)
		}
	}
}
