package main

import (
	"strings"
	"testing"
)

// Cells that the job would write in another way now are not read as if it had.
func TestCellsChanged(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	j.run(0)
	if o := j.command("scan", "JOB", "--limit", "1"); o.code != 0 {
		t.Errorf("nothing has changed: %v", o)
	}
	for override, says := range map[string]string{
		"metrics.pv={expr: sum(pv), encode: phoenix_bigint}": "the cells of metric pv have changed since run ",
		"sink.hbase.columns={pv: rows, rows: pv}":            "it was in column ",
		"sink.hbase.pack=all":                                "and is in all, as pack",
	} {
		if o := j.command("scan", "JOB", "--limit", "1", "--config-override", override); o.code != 2 || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: %v", override, o)
		}
	}
}
