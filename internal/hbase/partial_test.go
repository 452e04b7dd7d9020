package hbase

import (
	"fmt"
	"testing"

	"github.com/tsuna/gohbase/hrpc"
)

// A server ends an answer when it holds enough bytes, also in the middle of a
// row: the rows arrive whole all the same, and keys once.
func TestRowsThatComeInParts(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c, "r05")
	const rows, cells = 10, 7
	for i := range rows {
		values := map[string][]byte{}
		for q := range cells {
			values[fmt.Sprintf("q%d", q)] = make([]byte, 100)
		}
		if err := c.Put(t.Context(), name, fmt.Appendf(nil, "r%02d", i), "f", values, base); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []uint64{150, 250, 500, 1000, 1 << 20} {
		for _, keysOnly := range []bool{false, true} {
			next, answers := 0, 0
			s := rangeScan{table: name, options: []func(hrpc.Call) error{hrpc.MaxResultSize(limit)}, keysOnly: keysOnly}
			err := c.scan(t.Context(), s, func(r hrpc.ResultV2) error {
				answers++
				if want := fmt.Sprintf("r%02d", next); string(r.Cells[0].Row()) != want {
					t.Errorf("limit %d: row %q came where %s was due", limit, r.Cells[0].Row(), want)
				}
				if !keysOnly && len(r.Cells) != cells {
					t.Errorf("limit %d: row %q came with %d cells of %d", limit, r.Cells[0].Row(), len(r.Cells), cells)
				}
				next++
				return nil
			})
			if err != nil || answers != rows {
				t.Errorf("limit %d, keys only %v: %d rows, %v", limit, keysOnly, answers, err)
			}
		}
	}
}
