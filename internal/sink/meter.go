package sink

import (
	"context"
	"sync/atomic"
)

// Readings are what a [Meter] has counted.
type Readings struct {
	// Rows, Cells and Bytes are those of batches that were acknowledged, with
	// those of slices that were given up later.
	Rows, Cells, Bytes int64
	// Batches were acknowledged, Retries sent again in part or in whole.
	Batches, Retries int64
	// InFlight batches are being sent now, or wait for their turn.
	InFlight int64
}

// Meter counts what another sender sends and what is acknowledged.
type Meter[B Batch] struct {
	Next Sender[B]

	rows, cells, bytes, batches, retries, inFlight atomic.Int64
}

// Send sends a batch.
func (m *Meter[B]) Send(ctx context.Context, b B) error {
	if c := courseOf(ctx); c != nil && c.attempt > 1 {
		m.retries.Add(1)
	}
	m.inFlight.Add(1)
	defer m.inFlight.Add(-1)
	err := m.Next.Send(ctx, b)
	if err == nil {
		m.rows.Add(b.Rows())
		m.cells.Add(b.Cells())
		m.bytes.Add(b.Bytes())
		m.batches.Add(1)
	}
	return err
}

// Read reads the counters; it may be called at any time.
func (m *Meter[B]) Read() Readings {
	return Readings{Rows: m.rows.Load(), Cells: m.cells.Load(), Bytes: m.bytes.Load(), Batches: m.batches.Load(), Retries: m.retries.Load(), InFlight: m.inFlight.Load()}
}
