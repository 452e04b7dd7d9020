package mover_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

func TestZZ(t *testing.T) {
	c := lab.Shared(t).ClickHouse(t)
	table := statesTable(t, c, 1_200_000, 0)
	limit := tightLimit(t, c, table)
	want := statesTruth(t, c, table)
	for i := range 12 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			j := load(t, c, "testdata/states.yaml", "source.table="+table, "scatter.slices=2", "limits.max_memory_usage="+strconv.Itoa(limit))
			if _, err := run(t, j, "2026-11-29"); err != nil {
				t.Log(err)
				return
			}
			for try := range 2 {
				got := tableOf(t, j)
				for k, w := range want {
					if !maps.Equal(w, got[k]) {
						r, err := client(t, j).Get(t.Context(), j.HBase.Table, []byte(k), 0, 0)
						t.Errorf("try %d %s: %q want %q; get %v %v", try, k, got[k], w, r.Cells, err)
					}
				}
			}
		})
	}
}
