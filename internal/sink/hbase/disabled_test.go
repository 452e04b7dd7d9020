package hbase_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

// TestDisabledAndEnabled: while a table is out of service rows wait. If it is back
// soon they are all there in the end; if it is not, the slice ends and says why.
func TestDisabledAndEnabled(t *testing.T) {
	f := sinktest.NewFixture(t)
	c := dial(t, nil)
	cfg := config(t, c, f)
	cfg.Batch.Rows = 50
	s := open(t, cfg)
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), sinktest.Rows(0, 1000)); err != nil {
		t.Fatal(err)
	}
	var again sync.WaitGroup
	disabled := make(chan struct{})
	again.Go(func() {
		err := c.DisableTable(t.Context(), cfg.Table)
		close(disabled)
		if err == nil {
			err = c.EnableTable(t.Context(), cfg.Table)
		}
		if err != nil {
			t.Error(err)
		}
	})
	<-disabled
	for i := 1; i < 10 && err == nil; i++ {
		err = w.Write(t.Context(), sinktest.Rows(i*1000, (i+1)*1000))
	}
	ack, commitErr := w.Commit(t.Context())
	again.Wait()
	rows, want := f.Want(t, 0, 10_000)
	switch {
	case commitErr != nil:
		// A machine with much to do takes more than some seconds to enable a table.
		if failure.ClassOf(commitErr) != failure.Sink || !strings.Contains(commitErr.Error(), "disabled") {
			t.Error(commitErr)
		}
	case ack != want:
		t.Errorf("acknowledged %+v, want %+v", ack, want)
	default:
		if got := read(t, c, cfg.Table); !cmp.Equal(got, rows) {
			t.Errorf("%d rows, want %d, or other cells", len(got), len(rows))
		}
	}
}
