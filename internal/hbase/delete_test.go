package hbase

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// TestDeleteHidesOneVersion: a deleted version stays hidden when it is put
// again, until a major compaction; what has a newer timestamp, put before the
// delete or after it, was never hidden. So a run deletes at timestamps that
// nobody puts at any more, and puts at a newer one.
func TestDeleteHidesOneVersion(t *testing.T) {
	c := dialLab(t)
	table := fmt.Sprintf("delete_%d", time.Now().UnixNano())
	if err := c.CreateTable(t.Context(), TableSpec{Name: table, Family: "f", Create: job.Create{Versions: 5, Compression: "NONE"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.DropTable(context.WithoutCancel(t.Context()), table) })
	keys := [][]byte{[]byte("k")}
	put := func(ts int64, value string) {
		t.Helper()
		if err := c.Put(t.Context(), table, keys[0], "f", map[string][]byte{"q": []byte(value)}, ts); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(when string, ts int64, want string) {
		t.Helper()
		row, err := c.Get(t.Context(), table, keys[0], ts, ts+1)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := row.Value("f", "q"); string(got) != want {
			t.Errorf("%s: at %d is %q, want %q", when, ts, got, want)
		}
	}
	put(100, "older")
	put(200, "gone")
	put(300, "newer")
	if err := c.DeleteVersion(t.Context(), table, "f", keys, 200); err != nil {
		t.Fatal(err)
	}
	put(200, "again")
	put(301, "after")
	for i, when := range []string{"at once", "after a major compaction"} {
		sees(when, 100, "older")
		sees(when, 200, "")
		sees(when, 300, "newer")
		sees(when, 301, "after")
		if i > 0 {
			break
		}
		if err := lab.Shared(t).HBase(t).Admin(t.Context(), "flush", table, "major_compact", table); err != nil {
			t.Fatal(err)
		}
	}
	put(200, "seen again")
	sees("put after a major compaction", 200, "seen again")
}
