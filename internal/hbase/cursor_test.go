package hbase

import (
	"fmt"
	"slices"
	"testing"
)

// TestCursor: pages of any size over regions give each row once, in order, and
// only at the timestamps asked for.
func TestCursor(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c, "row-000003", "row-000015")
	fill(t, c, name, 25, base+100)
	fill(t, c, name, 12, base+200)
	for _, tt := range []struct {
		prefix       string
		since, until int64
		from, to     int
	}{{"row-", base + 100, base + 101, 0, 25}, {"row-00001", base + 100, base + 101, 10, 20}, {"row-", base + 200, base + 201, 0, 12},
		{"row-000007", base + 100, base + 300, 7, 8}, {"", 0, 0, 0, 25}, {"rox", base + 100, base + 101, 0, 0}, {"row-", base + 300, base + 400, 0, 0}} {
		var want []string
		for i := tt.from; i < tt.to; i++ {
			want = append(want, fmt.Sprintf("row-%06d", i))
		}
		for _, page := range []int{1, 4, 5, 100} {
			cursor := c.Cursor(name, []byte(tt.prefix), tt.since, tt.until, page)
			var got []string
			for {
				r, more, err := cursor.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					break
				}
				if value, ok := r.Value("f", "q"); !ok || string(value) != "value" || len(r.Cells) != 1 {
					t.Errorf("the row %q has the cells %v", r.Key, r.Cells)
				}
				if len(cursor.rows) >= page {
					t.Errorf("%d rows are held, of pages of %d", len(cursor.rows), page)
				}
				got = append(got, string(r.Key))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v in pages of %d: %q", tt, page, got)
			}
		}
	}
}
