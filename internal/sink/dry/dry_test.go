package dry_test

import (
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/dry"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

// What would be written is what the other sinks acknowledge for the same rows,
// and what they refuse is refused.
func TestCounts(t *testing.T) {
	f := sinktest.NewFixture(t)
	s := dry.New(f.Keys, f.Cells, f.Columns)
	write := func(slice sink.Slice, from, to int) (sink.Ack, error) {
		w, err := s.Writer(t.Context(), slice)
		if err != nil {
			t.Fatal(err)
		}
		rows := sinktest.Rows(from, to)
		if slice.Attempt == 9 {
			rows.Row(0)[2].Num = 1 << 63 // does not fit an int64
		}
		if err := w.Write(t.Context(), rows); err != nil {
			w.Abort()
			return sink.Ack{}, err
		}
		return w.Commit(t.Context())
	}
	for _, attempt := range []int{1, 2} { // twice is once
		got, err := write(f.Slice(0, attempt), 0, 700)
		if _, want := f.Want(t, 0, 700); err != nil || got != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := write(f.Slice(1, 9), 700, 800); failure.ClassOf(err) != failure.Source {
		t.Errorf("a value that fits no cell: %v", err)
	}
	if _, err := write(f.Slice(1, 1), 700, 1000); err != nil {
		t.Fatal(err)
	}
	_, want := f.Want(t, 0, 1000)
	if got := s.Written(); got != want {
		t.Errorf("written %+v, want %+v", got, want)
	}
	if got := s.Committed(f.Unit); got != want {
		t.Errorf("of the unit %+v, want %+v", got, want)
	}
}
