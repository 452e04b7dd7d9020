package memory_test

import (
	"errors"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/memory"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(_ *testing.T, f sinktest.Fixture) sinktest.Target {
		s := memory.New(f.Keys, f.Cells, f.Columns)
		return sinktest.Target{Sink: s, Read: func(*testing.T) map[string]map[string][]byte { return s.Rows() }}
	})
}

func TestFail(t *testing.T) {
	f := sinktest.NewFixture(t)
	s := memory.New(f.Keys, f.Cells, f.Columns)
	broken := errors.New("broken")
	s.Fail = func(slice sink.Slice) error {
		if slice.Attempt == 1 {
			return broken
		}
		return nil
	}
	w, err := s.Writer(t.Context(), f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), sinktest.Rows(0, 1)); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := w.Commit(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
}
