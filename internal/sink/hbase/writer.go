package hbase

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// writer takes the rows of one attempt of one slice.
type writer struct {
	sink   *Sink
	slice  sink.Slice
	ctx    context.Context
	cancel context.CancelCauseFunc

	filling *hbase.Puts // the batch that takes rows, nil before the first
	key     []byte
	ended   bool

	under sync.WaitGroup // this writer's batches under way
	mu    sync.Mutex
	err   error // the first failure; the slice cannot be committed after it
	ack   sink.Ack
}

// Write encodes the rows and sends what fills a batch.
func (w *writer) Write(ctx context.Context, rows *row.Batch) error {
	if w.ended {
		return errors.New("hbase sink: a write after the writer's end")
	}
	dims := rows.Width - w.sink.config.Cells.Metrics()
	if rows.Len() > 0 && dims < 0 {
		return w.fail(fmt.Errorf("hbase sink: rows of %d values for %d metrics", rows.Width, w.sink.config.Cells.Metrics()))
	}
	for i := range rows.Len() {
		if err := w.add(rows.Row(i), dims); err != nil {
			return w.fail(err)
		}
		if w.full() {
			if err := w.flush(ctx); err != nil {
				return w.fail(err)
			}
		}
	}
	return w.failed()
}

// add encodes one row into the batch.
func (w *writer) add(values []row.Value, dims int) error {
	if w.filling == nil {
		w.filling = w.sink.batch()
	}
	c := &w.sink.config
	key, err := c.Keys.AppendKey(w.key[:0], w.slice.Unit, values)
	if err != nil {
		return err
	}
	w.key = key
	p := w.filling
	p.BeginRow(key)
	for i := range c.Cells.Len() {
		buffer, present, err := c.Cells.Append(p.Cell(i), i, values[dims:])
		if err != nil {
			p.DropRow()
			return fmt.Errorf("the row with the key %q: %w", key, err)
		}
		if present {
			p.EndCell(i, buffer)
		}
	}
	if !p.EndRow() {
		return fmt.Errorf("hbase sink: the row with the key %q has no cell", key)
	}
	return nil
}

func (w *writer) full() bool {
	return w.filling.Rows() >= int64(w.sink.config.Batch.Rows) || int64(w.filling.WireSize()) >= w.sink.config.Batch.Bytes
}

// flush starts the batch; it blocks while the sink has InFlight under way.
func (w *writer) flush(ctx context.Context) error {
	p := w.filling
	if p == nil {
		return nil
	}
	w.filling = nil
	ack := sink.Ack{Rows: p.Rows(), Cells: p.Cells(), Bytes: p.Bytes()}
	w.under.Add(1)
	err := w.sink.start(ctx, w.ctx, p, func(err error) {
		defer w.under.Done()
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.ack.Add(ack)
		} else if w.err == nil {
			w.err = err
			w.cancel(err) // the other batches of the slice are of no use
		}
	})
	if err != nil {
		w.under.Done()
		w.sink.release(p)
	}
	return err
}

// fail remembers the first failure and ends the writer's other batches.
func (w *writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		w.cancel(err)
	}
	return w.err
}

// failed is the first failure so far.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Commit sends the rest and waits for the acknowledgement of every row.
func (w *writer) Commit(ctx context.Context) (sink.Ack, error) {
	if w.ended {
		return sink.Ack{}, errors.New("hbase sink: the writer has ended")
	}
	w.ended = true
	defer w.cancel(errAborted)
	err := w.failed()
	if err == nil {
		err = w.flush(ctx)
	}
	if err != nil {
		err = w.fail(err)
		w.under.Wait()
		return sink.Ack{}, err
	}
	// The end of ctx ends the waiting by ending the batches: none may be
	// under way when the caller tries again.
	stop := context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })
	defer stop()
	w.under.Wait()
	if err := w.failed(); err != nil {
		return sink.Ack{}, err
	}
	return w.ack, nil
}

// Abort ends the batches under way and waits for them.
func (w *writer) Abort() {
	w.ended = true
	w.cancel(errAborted)
	w.under.Wait()
	if w.filling != nil {
		w.sink.release(w.filling)
		w.filling = nil
	}
}
