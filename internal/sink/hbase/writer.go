package hbase

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
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

	filling map[string]*hbase.Puts // the batches that take rows, by server
	key     []byte
	hasher  checksum.Hasher
	sums    *checksum.Table // of all rows that were written; nil: nobody asks
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
		if err := w.add(ctx, rows.Row(i), dims); err != nil {
			return w.fail(err)
		}
	}
	return w.failed()
}

// add encodes one row into its server's batch, and sends the batch if it is full.
func (w *writer) add(ctx context.Context, values []row.Value, dims int) error {
	c := &w.sink.config
	key, err := c.Keys.AppendKey(w.key[:0], w.slice.Unit, values)
	if err != nil {
		return err
	}
	w.key = key
	server := w.sink.sender.Home(key)
	p := w.filling[server]
	if p == nil {
		p = w.sink.memory.batch()
		w.filling[server] = p
	}
	before := p.WireSize()
	p.BeginRow(key)
	if w.sums != nil {
		w.hasher.Row(key)
	}
	for i := range c.Cells.Len() {
		header := p.Cell(i)
		buffer, present, err := c.Cells.Append(header, i, values[dims:])
		if err != nil {
			p.DropRow()
			return fmt.Errorf("the row with the key %q: %w", key, err)
		}
		if !present {
			continue
		}
		if w.sums != nil {
			w.hasher.AddTo(w.sums, w.sink.family, w.sink.names[i], buffer[len(header):])
		}
		p.EndCell(i, buffer)
	}
	if !p.EndRow() {
		return fmt.Errorf("hbase sink: the row with the key %q has no cell", key)
	}
	crowded := w.sink.memory.fill(p.WireSize() - before)
	if p.Rows() >= int64(c.Batch.Rows) || int64(p.WireSize()) >= c.Batch.Bytes {
		return w.flush(ctx, server)
	}
	if crowded {
		return w.flush(ctx, w.largest())
	}
	return nil
}

// largest is the server with the most bytes waiting.
func (w *writer) largest() string {
	var most string
	for server, p := range w.filling {
		if b := w.filling[most]; b == nil || p.WireSize() > b.WireSize() {
			most = server
		}
	}
	return most
}

// flush starts a server's batch; it blocks while the server has InFlight under way.
func (w *writer) flush(ctx context.Context, server string) error {
	p := w.filling[server]
	delete(w.filling, server)
	w.sink.memory.fill(-p.WireSize())
	ack := sink.Ack{Rows: p.Rows(), Cells: p.Cells(), Bytes: p.Bytes()}
	w.under.Add(1)
	err := w.sink.start(ctx, w.ctx, server, p, func(err error) {
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
		w.sink.memory.release(p)
	}
	return err
}

// flushAll starts what waits.
func (w *writer) flushAll(ctx context.Context) error {
	for server := range w.filling {
		if err := w.flush(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// discard gives the memory of what waits back.
func (w *writer) discard() {
	for server, p := range w.filling {
		delete(w.filling, server)
		w.sink.memory.fill(-p.WireSize())
		w.sink.memory.release(p)
	}
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
		err = w.flushAll(ctx)
	}
	if err != nil {
		err = w.fail(err)
		w.under.Wait()
		w.discard()
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
	w.ack.Sums = w.sums
	return w.ack, nil
}

// Abort ends the batches under way and waits for them.
func (w *writer) Abort() {
	w.ended = true
	w.cancel(errAborted)
	w.under.Wait()
	w.discard()
}
