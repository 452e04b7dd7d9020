// Package sinktest is the one suite of tests that every sink must pass.
package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// Fixture is the job that the suite writes rows of: dimensions n UInt64 and s
// Nullable(String), metrics a UInt64 and b Nullable(Float64), one level, one period.
type Fixture struct {
	Keys    *rowkey.Codec
	Cells   *rowkey.Cells
	Columns []string
	Unit    job.Unit
}

// Target is a sink under test.
type Target struct {
	Sink sink.Sink
	// Read gives all rows that the receiver holds: cells by qualifier, by row key.
	Read func(t *testing.T) map[string]map[string][]byte
	// Form says that the receiver has a form of its own, in which an UInt64 of any
	// size fits and bytes are counted; a text must be UTF-8 there.
	Form bool
}

// NewFixture makes the fixture, for tests of a sink beyond the suite.
func NewFixture(t testing.TB) Fixture {
	t.Helper()
	types := make([]row.Type, 4)
	for i, name := range []string{"UInt64", "Nullable(String)", "UInt64", "Nullable(Float64)"} {
		var err error
		if types[i], err = row.ParseType(name); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := rowkey.Compile(rowkey.Config{
		Template: "{salt}|{n}|{s}",
		Salt:     &job.Salt{Over: []int{0}, Buckets: 16},
		Dims:     []rowkey.Dim{{Name: "n", Type: types[0]}, {Name: "s", Type: types[1], Null: job.NullPolicy{Mode: job.NullLiteral, Literal: `\N`}}},
		Levels:   []job.Level{{Code: "11", Dimensions: []int{0, 1}}},
		Periods:  []job.Period{"DAY"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cells, err := rowkey.CompileCells([]job.Metric{{Name: "a"}, {Name: "b"}}, types[2:], nil)
	if err != nil {
		t.Fatal(err)
	}
	unit := job.Unit{Code: "11", Period: job.Span{Period: "DAY"}, Date: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}
	return Fixture{keys, cells, []string{"a", "b"}, unit}
}

// Slice names a slice of the fixture.
func (f Fixture) Slice(index, attempt int) sink.Slice {
	return sink.Slice{Unit: f.Unit, Name: strconv.Itoa(index), Attempt: attempt}
}

// Row is the i-th row of the fixture: every third has no b.
func Row(i int) []row.Value {
	b := row.Value{Kind: row.Float, Null: true}
	if i%3 != 0 {
		b = row.Value{Kind: row.Float, Num: uint64(i)}
	}
	return []row.Value{{Kind: row.UInt, Num: uint64(i)}, {Kind: row.String, Str: fmt.Sprintf("s|%d", i%7)}, {Kind: row.UInt, Num: uint64(i * i)}, b}
}

// Rows is a batch of the rows from, from+1, … to-1.
func Rows(from, to int) *row.Batch {
	b := &row.Batch{Width: 4}
	for i := from; i < to; i++ {
		b.Values = append(b.Values, Row(i)...)
	}
	return b
}

// Want is what a receiver must hold of the rows, and their acknowledgement.
func (f Fixture) Want(t testing.TB, from, to int) (map[string]map[string][]byte, sink.Ack) {
	t.Helper()
	out, ack := map[string]map[string][]byte{}, sink.Ack{}
	for i := from; i < to; i++ {
		values := Row(i)
		key, err := f.Keys.AppendKey(nil, f.Unit, values[:2])
		if err != nil {
			t.Fatal(err)
		}
		cells := map[string][]byte{}
		for m := range f.Columns {
			cell, present, err := f.Cells.Append(nil, m, values[2:])
			if err != nil {
				t.Fatal(err)
			}
			if present {
				cells[f.Columns[m]] = cell
				ack.Add(sink.Ack{Cells: 1, Bytes: int64(len(f.Columns[m]) + len(cell))})
			}
		}
		out[string(key)] = cells
		ack.Add(sink.Ack{Rows: 1, Bytes: int64(len(key))})
	}
	return out, ack
}

// Run runs the suite; open makes a sink on an empty receiver, with small
// batches, so that some thousand rows are several of them.
func Run(t *testing.T, open func(t *testing.T, f Fixture) Target) {
	s := suite{f: NewFixture(t), open: open}
	t.Run("commit", s.commit)
	t.Run("empty slice", s.empty)
	t.Run("concurrent writers", s.concurrent)
	t.Run("a slice twice", s.twice)
	t.Run("abort and again", s.abort)
	t.Run("batch is the caller's", s.reuse)
	t.Run("bad value", s.badValue)
	t.Run("duplicate key", s.duplicate)
	t.Run("cancelled", s.cancelled)
	t.Run("after the end", s.afterEnd)
}

type suite struct {
	f    Fixture
	open func(t *testing.T, f Fixture) Target
}

// write commits the first rows as one slice.
func (s suite) write(t *testing.T, target Target, attempt, to int) sink.Ack {
	t.Helper()
	w, err := target.Sink.Writer(t.Context(), s.f.Slice(0, attempt))
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < to; from += 300 {
		if err := w.Write(t.Context(), Rows(from, min(from+300, to))); err != nil {
			t.Fatal(err)
		}
	}
	ack, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

// holds wants the first rows, and no others, to be there.
func (s suite) holds(t *testing.T, target Target, to int) {
	t.Helper()
	want, _ := s.f.Want(t, 0, to)
	got := target.Read(t)
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if d := cmp.Diff(want[key], got[key]); d != "" {
			t.Fatalf("row %q:\n%s", key, d)
		}
	}
}

func (s suite) commit(t *testing.T) {
	target := s.open(t, s.f)
	ack := s.write(t, target, 1, 2500)
	_, want := s.f.Want(t, 0, 2500)
	if target.Form {
		if ack.Bytes < ack.Cells {
			t.Errorf("acknowledged %+v: that is not a byte a cell", ack)
		}
		want.Bytes = ack.Bytes
	}
	if ack != want {
		t.Errorf("acknowledged %+v, want %+v", ack, want)
	}
	s.holds(t, target, 2500)
}

func (s suite) empty(t *testing.T) {
	target := s.open(t, s.f)
	if ack := s.write(t, target, 1, 0); ack != (sink.Ack{}) {
		t.Errorf("acknowledged %+v", ack)
	}
	s.holds(t, target, 0)
}

func (s suite) concurrent(t *testing.T) {
	target := s.open(t, s.f)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w, err := target.Sink.Writer(t.Context(), s.f.Slice(i, 1))
			if err == nil {
				err = w.Write(t.Context(), Rows(i*500, (i+1)*500))
			}
			if err == nil {
				_, err = w.Commit(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.holds(t, target, 4000)
}

func (s suite) twice(t *testing.T) {
	target := s.open(t, s.f)
	first := s.write(t, target, 1, 1000)
	if second := s.write(t, target, 2, 1000); second != first {
		t.Errorf("acknowledged %+v, then %+v", first, second)
	}
	s.holds(t, target, 1000)
}

func (s suite) abort(t *testing.T) {
	target := s.open(t, s.f)
	w, err := target.Sink.Writer(t.Context(), s.f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), Rows(0, 1000)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	s.write(t, target, 2, 1000)
	s.holds(t, target, 1000)
}

func (s suite) reuse(t *testing.T) {
	target := s.open(t, s.f)
	w, err := target.Sink.Writer(t.Context(), s.f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	b := Rows(0, 300)
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for i := range b.Values {
		b.Values[i] = row.Value{Kind: row.String, Str: "overwritten"}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.holds(t, target, 300)
}

// fails wants a slice with the rows to fail with the class, in Write or in Commit.
func (s suite) fails(t *testing.T, class failure.Class, target Target, rows *row.Batch) {
	t.Helper()
	w, err := target.Sink.Writer(t.Context(), s.f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	writeErr := w.Write(t.Context(), rows)
	_, err = w.Commit(t.Context())
	if err == nil || writeErr != nil && failure.ClassOf(writeErr) != class || failure.ClassOf(err) != class {
		t.Errorf("Write: %v, Commit: %v, want class %d", writeErr, err, class)
	}
}

func (s suite) badValue(t *testing.T) {
	target, rows := s.open(t, s.f), Rows(0, 10)
	if target.Form {
		rows.Row(5)[1].Str = "\xff"
	} else {
		rows.Row(5)[2].Num = 1 << 63 // does not fit an int64
	}
	s.fails(t, failure.Source, target, rows)
}

func (s suite) duplicate(t *testing.T) {
	rows := Rows(0, 10)
	rows.Values = append(rows.Values, Row(3)...)
	s.fails(t, failure.Source, s.open(t, s.f), rows)
}

func (s suite) cancelled(t *testing.T) {
	target := s.open(t, s.f)
	ctx, cancel := context.WithCancel(t.Context())
	w, err := target.Sink.Writer(ctx, s.f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	writeErr := w.Write(ctx, Rows(0, 2000))
	_, err = w.Commit(ctx)
	if !errors.Is(err, context.Canceled) || !failure.IsTransient(err) {
		t.Errorf("Write: %v, Commit: %v", writeErr, err)
	}
	s.write(t, target, 2, 2000)
	s.holds(t, target, 2000)
}

func (s suite) afterEnd(t *testing.T) {
	target := s.open(t, s.f)
	w, err := target.Sink.Writer(t.Context(), s.f.Slice(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), Rows(0, 1)); err == nil {
		t.Error("a write after Commit is no error")
	}
	if _, err := w.Commit(t.Context()); err == nil {
		t.Error("a second Commit is no error")
	}
	if err := target.Sink.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Sink.Writer(t.Context(), s.f.Slice(1, 1)); err == nil {
		t.Error("a writer after Close is no error")
	}
}
