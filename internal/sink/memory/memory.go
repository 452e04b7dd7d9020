// Package memory is a sink that keeps rows in memory, for tests of everything
// above sinks. It writes the same keys and cells as the HBase sink.
package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// Sink holds rows by key. Like HBase it shows rows before their slice is committed.
type Sink struct {
	keys    *rowkey.Codec
	cells   *rowkey.Cells
	columns []string

	mu     sync.Mutex
	rows   map[string]map[string][]byte
	closed bool

	// Fail, if set, is asked before each Write and Commit; its error is returned.
	// It is set before the sink is used.
	Fail func(s sink.Slice) error
}

var _ sink.Sink = (*Sink)(nil)

// New makes an empty sink; columns are the qualifiers by metric.
func New(keys *rowkey.Codec, cells *rowkey.Cells, columns []string) *Sink {
	return &Sink{keys: keys, cells: cells, columns: columns, rows: map[string]map[string][]byte{}}
}

// Rows copies what is there: cells by qualifier, by row key.
func (s *Sink) Rows() map[string]map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rows) // a row's cells are never changed after it was put
}

// Writer opens a writer.
func (s *Sink) Writer(_ context.Context, slice sink.Slice) (sink.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the memory sink is closed")
	}
	return &writer{sink: s, slice: slice, seen: map[string]bool{}}, nil
}

// Close refuses new writers.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

type writer struct {
	sink  *Sink
	slice sink.Slice
	seen  map[string]bool
	ack   sink.Ack
	err   error
	ended bool
}

func (w *writer) Write(ctx context.Context, rows *row.Batch) error {
	if w.ended {
		return errors.New("memory sink: a write after the writer's end")
	}
	for i := 0; i < rows.Len() && w.err == nil; i++ {
		w.err = w.check(ctx)
		if w.err == nil {
			w.err = w.put(rows.Row(i))
		}
	}
	return w.err
}

func (w *writer) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory sink: %w", context.Cause(ctx))
	}
	if w.sink.Fail != nil {
		return w.sink.Fail(w.slice)
	}
	return nil
}

func (w *writer) put(values []row.Value) error {
	s := w.sink
	dims := len(values) - s.cells.Metrics()
	if dims < 0 {
		return fmt.Errorf("memory sink: rows of %d values for %d metrics", len(values), s.cells.Metrics())
	}
	key, err := s.keys.AppendKey(nil, w.slice.Unit, values)
	if err != nil {
		return err
	}
	if w.seen[string(key)] {
		return failure.Errorf(failure.Source, "two rows of one slice have the row key %q", key)
	}
	w.seen[string(key)] = true
	cells := map[string][]byte{}
	for i := range s.cells.Len() {
		cell, present, err := s.cells.Append(nil, i, values[dims:])
		if err != nil {
			return err
		}
		if present {
			cells[s.columns[i]] = append([]byte{}, cell...)
			w.ack.Cells++
			w.ack.Bytes += int64(len(s.columns[i]) + len(cell))
		}
	}
	w.ack.Rows++
	w.ack.Bytes += int64(len(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	// As in HBase, a cell that is not written keeps what an earlier attempt wrote.
	for q, v := range s.rows[string(key)] {
		if _, written := cells[q]; !written {
			cells[q] = v
		}
	}
	s.rows[string(key)] = cells
	return nil
}

func (w *writer) Commit(ctx context.Context) (sink.Ack, error) {
	if w.ended {
		return sink.Ack{}, errors.New("memory sink: the writer has ended")
	}
	w.ended = true
	if w.err == nil {
		w.err = w.check(ctx)
	}
	if w.err != nil {
		return sink.Ack{}, w.err
	}
	return w.ack, nil
}

func (w *writer) Abort() { w.ended = true }
