package hbase

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

const (
	// fillMemory bounds what the batches hold that are being filled, and
	// flightMemory those under way.
	fillMemory   = 16 << 20
	flightMemory = 16 << 20
)

// memory owns the batches' memory, which is used again and again.
type memory struct {
	make    func() *hbase.Puts
	filling atomic.Int64 // bytes in batches that are being filled
	flight  *semaphore.Weighted

	mu   sync.Mutex
	free []*hbase.Puts // empty batches
	kept int           // their memory

	held atomic.Int64 // bytes in batches that are filled or under way
}

func newMemory(create func() *hbase.Puts) *memory {
	return &memory{make: create, flight: semaphore.NewWeighted(flightMemory)}
}

// batch is an empty batch, with used memory if there is some.
func (m *memory) batch() *hbase.Puts {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.free)
	if n == 0 {
		return m.make()
	}
	p := m.free[n-1]
	m.free[n-1] = nil
	m.free = m.free[:n-1]
	m.kept -= p.Memory()
	return p
}

// release keeps a batch's memory for another as long as the sink's bound allows.
func (m *memory) release(p *hbase.Puts) {
	p.Reset()
	m.mu.Lock()
	defer m.mu.Unlock()
	if int64(m.kept+p.Memory())+m.held.Load() > fillMemory+flightMemory {
		return
	}
	m.kept += p.Memory()
	m.free = append(m.free, p)
}

// fill counts bytes that came into batches being filled, or left them if it is
// negative, and tells whether there are too many.
func (m *memory) fill(bytes int) (crowded bool) {
	m.held.Add(int64(bytes))
	return m.filling.Add(int64(bytes)) > fillMemory
}

// launch waits until a batch may be under way; land ends that.
func (m *memory) launch(ctx context.Context, p *hbase.Puts) (land func(), err error) {
	size := int64(p.WireSize())
	share := min(size, flightMemory) // a single large row must pass
	if err := m.flight.Acquire(ctx, share); err != nil {
		return nil, context.Cause(ctx)
	}
	m.held.Add(size)
	return func() {
		m.held.Add(-size)
		m.flight.Release(share)
	}, nil
}
