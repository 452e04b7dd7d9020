// Package hbase is the sink that puts rows into an HBase table.
//
// All cells of a run carry one timestamp, so a row that is put twice is the
// same cells at the same timestamp: writing a slice again changes nothing. That
// is what makes the retries here, and those of whole slices, safe.
//
// A writer collects its rows in a batch for each region server, bounded in rows
// and bytes and sorted by key, so that a batch is one request. At most InFlight
// requests are under way at a server, and Write blocks while all of a server's
// places are taken. The batches of all writers together hold about 32 MiB at most,
// half of it while they are filled and half while they are under way; when the
// first half is full, the largest batch goes out before its time.
//
// A batch goes by a chain of senders: sink.Retry, sink.Meter, sink.Throttle, which
// holds the job's rate for all servers together, and hbase.Sender, whose requests
// the valve lets out: a server that is busy gets its rows more slowly, see pacer.
// The valve asks the gate last, however long a request has waited before.
//
// The write-ahead log is on unless the job says otherwise: an acknowledged row
// survives the death of a region server.
package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
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
	// Rate caps what all servers get together.
	Rate job.Rate
	// WAL is what a put waits for before it is acknowledged; empty is what the
	// table says.
	WAL job.WAL
	// Patience is how long a batch is retried while no row of the sink is
	// acknowledged; 0 means two minutes.
	Patience time.Duration
	// Attempt is the time that a server has for its answer to one request; 0 means 30 seconds.
	Attempt time.Duration
	// Gate, if set, is asked before each request, which gets no more time than until
	// what it gives; it may wait, and its error ends the batch.
	Gate func(ctx context.Context) (until time.Time, err error)
	// Sum asks for the sums of a slice's cells in its acknowledgement.
	Sum bool
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
	sink.Readings
	// Memory is what the batches hold now, in bytes.
	Memory int64
	// Pushbacks are requests that a server refused because it was busy, and Pace
	// is the rate, in rows a second, that the slowest server gets; 0 if none is limited.
	Pushbacks, Pace int64
}

// Sink puts the rows of one run into one table of one cluster.
type Sink struct {
	config Config
	sender *hbase.Sender
	family []byte   // as a hash wants them
	names  [][]byte // of the columns
	chain
	valve  *valve
	memory *memory

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
	s := &Sink{config: c, family: []byte(c.Family)}
	for _, q := range c.Columns {
		s.names = append(s.names, []byte(q))
	}
	s.valve = newValve(c.Batch.InFlight, s.gate)
	s.sender = c.Client.NewSender(c.Table, hbase.SendOptions{
		Durability: durability(c.WAL), Timeout: c.Attempt, Valve: s.valve, Snappy: c.Batch.Compress == job.CompressSnappy,
	})
	s.chain = newChain(s.sender, c, s.look)
	s.memory = newMemory(func() *hbase.Puts { return hbase.NewPuts(c.Family, c.Columns, c.Timestamp) })
	return s, nil
}

// Stats reads the counters; it may be called at any time.
func (s *Sink) Stats() Stats {
	return Stats{Readings: s.meter.Read(), Memory: s.memory.held.Load(), Pushbacks: s.valve.pushbacks.Load(), Pace: s.valve.pace()}
}

// gate asks the caller's gate. The time that it was shut is no sign of HBase
// getting nowhere.
func (s *Sink) gate(ctx context.Context) (until time.Time, err error) {
	if s.config.Gate == nil {
		return until, nil
	}
	begin := time.Now()
	until, err = s.config.Gate(ctx)
	shut := time.Since(begin)
	sink.Excuse(ctx, shut)
	if shut > sink.Suspicion {
		s.retry.Alive() // others waited for places that requests at the gate had
	}
	return until, err
}

// SetRate changes the cap on what all servers get together; it may be called at any time.
func (s *Sink) SetRate(r job.Rate) { s.throttle.SetRate(r) }

func durability(w job.WAL) hbase.Durability {
	switch w {
	case job.WALOn:
		return hbase.DurabilitySync
	case job.WALAsync:
		return hbase.DurabilityAsync
	case job.WALOff:
		return hbase.DurabilityNone
	}
	return hbase.DurabilityTable
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
	w := &writer{sink: s, slice: slice, ctx: ctx, cancel: cancel, filling: map[string]*hbase.Puts{}}
	if s.config.Sum {
		w.sums = new(checksum.Table)
	}
	return w, nil
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

// start sends a batch by a goroutine of its own as soon as its server has a
// place and there is memory; done gets the result. An error means that it was not started.
func (s *Sink) start(ctx, writer context.Context, server string, p *hbase.Puts, done func(error)) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(writer, func() { cancel(context.Cause(writer)) })()
	leave, err := s.valve.enter(both, server)
	if err != nil {
		return err
	}
	land, err := s.memory.launch(both, p)
	if err != nil {
		leave()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		leave()
		land()
		return errClosed
	}
	s.open.Go(func() {
		err := s.deliver(writer, p)
		land()
		s.memory.release(p)
		leave()
		done(err)
	})
	return nil
}
