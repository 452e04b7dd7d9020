package mover_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

func TestZZ(t *testing.T) {
	c := lab.Shared(t).OldClickHouse(t)
	table := statesTable(t, c, 1_200_000, 0)
	limit := tightLimit(t, c, table)
	for range 150 {
		j := load(t, c, "testdata/states.yaml", "source.table="+table, "scatter.slices=1", "limits.max_memory_usage="+strconv.Itoa(limit))
		res, err := run(t, j, "2026-11-29")
		if err != nil {
			out, _ := json.Marshal(res)
			t.Fatalf("%v\n%s\nnow there are %d rows", err, out, len(tableOf(t, j)))
		}
	}
}
