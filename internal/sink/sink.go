// Package sink holds the contract between the mover and whatever receives its
// rows. The contract is by slice, so that a receiver that only makes rows
// visible as a whole (files that are loaded, transactions) fits in as well as
// one that takes puts.
package sink

import (
	"context"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Slice identifies a writer's rows within a run.
type Slice struct {
	// Unit is the level, period and date that the rows belong to.
	Unit job.Unit
	// Name tells the slices of a unit apart.
	Name string
	// Attempt numbers the tries of the slice, from 1.
	Attempt int
}

// A Sink receives the rows of one run. It is safe for concurrent use.
type Sink interface {
	// Writer opens a writer for one attempt of one slice. Writing a slice
	// twice, in one attempt or in several, leaves the sink as writing it once:
	// a sink is idempotent by (run, slice).
	Writer(ctx context.Context, s Slice) (Writer, error)
	// Close ends the run's use of the sink. Rows not committed by then may or
	// may not be there; they belong to no success.
	Close() error
}

// A Writer takes the rows of one attempt of one slice. It is used by one
// goroutine. Exactly one of Commit and Abort ends it.
type Writer interface {
	// Write takes rows; it blocks while the sink has as much under way as it
	// may. The batch is the caller's again when Write returns: a sink that
	// still needs it has made a copy. An error means that the slice cannot be
	// committed any more; [failure.IsTransient] tells whether a new attempt is of use.
	Write(ctx context.Context, rows *row.Batch) error
	// Commit returns after every row is acknowledged by the receiver, or with
	// the reason why that is not so.
	Commit(ctx context.Context) (Ack, error)
	// Abort gives up the attempt and waits until nothing of it is under way.
	Abort()
}

// An Ack is what a receiver acknowledged for one slice.
type Ack struct {
	// Rows and Cells count what was sent and acknowledged; Bytes is the sum of
	// keys, qualifiers and values.
	Rows, Cells, Bytes int64
	// Sums are those of the cells as they were sent, nil where nobody asked for them.
	Sums *checksum.Table
}

// Add sums acknowledgements.
func (a *Ack) Add(b Ack) {
	a.Rows += b.Rows
	a.Cells += b.Cells
	a.Bytes += b.Bytes
	switch {
	case b.Sums == nil:
	case a.Sums == nil:
		a.Sums = new(*b.Sums)
	default:
		a.Sums.Add(b.Sums)
	}
}
