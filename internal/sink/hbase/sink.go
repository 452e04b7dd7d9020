// Package hbase is the sink that puts rows into an HBase table.
//
// All cells of a run carry one timestamp, so a row that is put twice is the
// same cells at the same timestamp: writing a slice again changes nothing. That
// is what makes the retries here, and those of whole slices, safe.
//
// Rows are collected into batches bounded in rows and bytes, sorted by key,
// and sent by up to InFlight goroutines of the whole sink. A writer has one batch
// that it fills; Write blocks while all places are taken. So the sink holds at
// most (writers + InFlight) batches.
//
// The write-ahead log is on: an acknowledged row survives the death of a region server.
package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// Config is what a Sink is made from.
type Config struct {
	Client *hbase.Client
	// Table must exist, with Family.
	Table, Family string
	// Columns are the qualifiers, by metric.
	Columns []string
	Keys    *rowkey.Codec
	Cells   *rowkey.Cells
	// Timestamp is that of all cells, in milliseconds.
	Timestamp int64
	// Batch bounds a batch; zero fields take 1000 rows, 2 MiB and 4 in flight.
	Batch job.Batch
	// Patience is how long a batch is retried until its writer gives up; 0 means two minutes.
	Patience time.Duration
	// Attempt is the time of one attempt of a batch; 0 means 30 seconds.
	Attempt time.Duration
	// Gate, if set, is asked before each request; it may wait, and its error ends
	// the batch.
	Gate func(ctx context.Context) error
	// Log gets a line for each attempt that failed.
	Log *slog.Logger
}

func (c *Config) fill() error {
	if c.Client == nil || c.Keys == nil || c.Cells == nil || c.Log == nil || c.Timestamp <= 0 {
		return errors.New("hbase sink: client, codecs, log and timestamp are needed")
	}
	if c.Cells.Len() != len(c.Columns) {
		return fmt.Errorf("hbase sink: %d cells and %d columns", c.Cells.Len(), len(c.Columns))
	}
	for i, q := range c.Columns {
		if slices.Contains(c.Columns[:i], q) {
			return failure.New(failure.Usage, fmt.Errorf("two metrics are written to the column %s", q), "give each its own in columns:")
		}
	}
	c.Batch.Rows = or(c.Batch.Rows, 1000)
	c.Batch.Bytes = or(c.Batch.Bytes, 2<<20)
	c.Batch.InFlight = or(c.Batch.InFlight, 4)
	c.Patience = or(c.Patience, 2*time.Minute)
	c.Attempt = min(or(c.Attempt, 30*time.Second), c.Patience)
	return nil
}

func or[T int | int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Stats are counters of a Sink since it was opened.
type Stats struct {
	// Rows, Cells and Bytes were acknowledged, those of attempts that were
	// given up later included.
	Rows, Cells, Bytes int64
	// Batches were acknowledged, Retries sent again in part or in whole.
	Batches, Retries int64
	// InFlight batches are under way now.
	InFlight int64
}

// Sink puts the rows of one run into one table of one cluster.
type Sink struct {
	config Config
	places chan struct{}    // a token for each batch under way
	free   chan *hbase.Puts // empty batches with memory

	rows, cells, bytes, batches, retries, inFlight atomic.Int64

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // batches under way
}

var _ sink.Sink = (*Sink)(nil)

// New opens a sink. The client stays the caller's and must outlive it.
func New(c Config) (*Sink, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	return &Sink{config: c, places: make(chan struct{}, c.Batch.InFlight), free: make(chan *hbase.Puts, 2*c.Batch.InFlight)}, nil
}

// Stats reads the counters; it may be called at any time.
func (s *Sink) Stats() Stats {
	return Stats{Rows: s.rows.Load(), Cells: s.cells.Load(), Bytes: s.bytes.Load(), Batches: s.batches.Load(), Retries: s.retries.Load(), InFlight: s.inFlight.Load()}
}

// Writer opens a writer; it fails after Close only.
func (s *Sink) Writer(ctx context.Context, slice sink.Slice) (sink.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	// The batches outlive a call of Write, but not the writer's own context.
	ctx, cancel := context.WithCancelCause(ctx)
	return &writer{sink: s, slice: slice, ctx: ctx, cancel: cancel}, nil
}

var (
	errClosed  = errors.New("the HBase sink is closed")
	errAborted = fmt.Errorf("the attempt was given up: %w", context.Canceled)
)

// Close waits for the batches under way, which end within the sink's patience,
// or at once if their writers' contexts end.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.open.Wait()
	return nil
}

// batch is an empty batch, with used memory if there is some.
func (s *Sink) batch() *hbase.Puts {
	select {
	case p := <-s.free:
		return p
	default:
		return hbase.NewPuts(s.config.Table, s.config.Family, s.config.Columns, s.config.Timestamp)
	}
}

// release keeps a batch's memory for the next one.
func (s *Sink) release(p *hbase.Puts) {
	p.Reset()
	select {
	case s.free <- p:
	default:
	}
}

// start sends a batch by a goroutine of its own as soon as there is a place;
// done gets the result. An error means that it was not started.
func (s *Sink) start(ctx, writer context.Context, p *hbase.Puts, done func(error)) error {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-writer.Done():
		return context.Cause(writer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		<-s.places
		return errClosed
	}
	s.open.Add(1)
	s.inFlight.Add(1)
	go func() {
		defer s.open.Done()
		err := s.deliver(writer, p)
		if err == nil {
			s.rows.Add(p.Rows())
			s.cells.Add(p.Cells())
			s.bytes.Add(p.Bytes())
			s.batches.Add(1)
		}
		s.release(p)
		s.inFlight.Add(-1)
		<-s.places
		done(err)
	}()
	return nil
}
