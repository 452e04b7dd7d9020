package mover

import (
	"context"
	"log/slog"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/spool"
)

const (
	// queueBytes bounds the rows that wait in memory between ClickHouse and the
	// sink, in bytes over all slices: a slow sink must not grow the mover.
	queueBytes = 48 << 20
	// queueRows is the number of rows that travel together.
	queueRows = 2048
)

// A readAhead is the room for rows that wait for the sink, shared by all
// slices: memory first, and past that a spool on disk. A query whose reader
// waits loses its time limit to the waiting, so reading goes on while there is
// room in either; where there is none, it waits.
type readAhead struct {
	spool    *spool.Spool // nil: there is none
	log      *slog.Logger
	progress *report.Progress
	pool     sync.Pool

	mu   sync.Mutex
	room int64         // bytes of memory that are left
	all  int64         // bytes of memory in all
	more chan struct{} // closed when room was given back; nil while nobody waits

	spooled, full, broken sync.Once // what is logged once a run
}

func newReadAhead(bytes int64, s *spool.Spool, log *slog.Logger, p *report.Progress) *readAhead {
	return &readAhead{
		spool: s, log: log, progress: p, room: bytes, all: bytes,
		pool: sync.Pool{New: func() any { return new(row.Batch) }},
	}
}

// batch gives an empty batch.
func (r *readAhead) batch(width int) *row.Batch {
	b := r.pool.Get().(*row.Batch)
	b.Reset(width)
	return b
}

func (r *readAhead) take(bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.room {
		return false
	}
	r.room -= bytes
	return true
}

// gaveBack adds bytes to the room in memory and wakes those who wait for room
// there or on disk.
func (r *readAhead) gaveBack(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room += bytes
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// changed is closed when room was given back after this call.
func (r *readAhead) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	return r.more
}

// A lane carries the batches of one attempt of one slice, first in, first out,
// from one goroutine to another.
type lane struct {
	*readAhead
	disk *spool.Queue // nil without a spool

	mu     sync.Mutex
	memory []queued // all of it older than what is on disk
	ended  bool
	ready  chan struct{} // there may be something to take
}

// A queued batch holds its size of the memory until it is released.
type queued struct {
	*row.Batch
	size int64
}

func (r *readAhead) lane() *lane {
	l := &lane{readAhead: r, ready: make(chan struct{}, 1)}
	if r.spool != nil {
		l.disk = r.spool.Queue()
	}
	return l
}

// put hands over a batch, waiting while there is no room for it.
func (l *lane) put(ctx context.Context, b *row.Batch) error {
	q := queued{b, min(int64(b.Size()), l.all)}
	if ok, err := l.tryPut(q); ok || err != nil {
		return err
	}
	for {
		more := l.changed() // asked for before trying, so that nothing is missed
		if ok, err := l.tryPut(q); ok || err != nil {
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *lane) tryPut(q queued) (bool, error) {
	ok := l.toMemory(q)
	if !ok && l.disk != nil {
		var err error
		if ok, err = l.toDisk(q.Batch); err != nil {
			return false, err
		}
	}
	if ok {
		l.wake()
	}
	return ok, nil
}

// toMemory keeps the order: while batches are on disk, new ones go there too.
func (l *lane) toMemory(q queued) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onDisk() > 0 || !l.take(q.size) {
		return false
	}
	l.memory = append(l.memory, q)
	return true
}

func (l *lane) onDisk() int {
	if l.disk == nil {
		return 0
	}
	return l.disk.Len()
}

func (l *lane) toDisk(b *row.Batch) (bool, error) {
	bytes, ok, err := l.disk.Push(b)
	if err != nil {
		return false, err
	}
	if !ok {
		l.noRoom()
		return false, nil
	}
	l.spooled.Do(func() { l.log.Info("the sink is slower than ClickHouse: rows wait on disk") })
	l.progress.Spooled(bytes)
	l.pool.Put(b)
	return true, nil
}

// noRoom says, once, why reading waits.
func (l *lane) noRoom() {
	const remedy = "a query may reach its time limit by that"
	if err := l.spool.Err(); err != nil {
		l.broken.Do(func() { l.log.Warn("the spool's disk fails; reading waits for the sink: "+remedy, "error", err) })
		return
	}
	l.full.Do(func() { l.log.Warn("the spool is full; reading waits for the sink: "+remedy, "bytes", l.spool.Used()) })
}

func (l *lane) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// end says that nothing more will be put.
func (l *lane) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.wake()
}

// next waits for a batch, which is to be released. False is the end.
func (l *lane) next(ctx context.Context) (queued, bool, error) {
	for {
		q, where := l.oldest()
		switch where {
		case inMemory:
			return q, true, nil
		case onDisk:
			b := l.batch(0)
			_, err := l.disk.Pop(b)
			l.gaveBack(0) // the disk may have room now
			return queued{b, 0}, err == nil, err
		case nowhere:
			return queued{}, false, nil
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return queued{}, false, context.Cause(ctx)
		}
	}
}

// place is where the oldest batch of a lane is.
type place int

const (
	notThere place = iota // yet
	inMemory
	onDisk
	nowhere // and there will be none
)

// oldest takes the oldest batch, if it is in memory. The places are looked at
// together: a batch that was put into memory after the disk was found to be
// empty is younger than none that is on disk.
func (l *lane) oldest() (queued, place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.memory) > 0:
		q := l.memory[0]
		l.memory[0] = queued{}
		l.memory = l.memory[1:]
		return q, inMemory
	case l.onDisk() > 0:
		return queued{}, onDisk
	case l.ended:
		return queued{}, nowhere
	}
	return queued{}, notThere
}

// release gives the batch's room back, and the batch to the pool.
func (r *readAhead) release(q queued) {
	r.pool.Put(q.Batch)
	r.gaveBack(q.size)
}

// close gives back what was not taken. Nobody uses the lane any more.
func (l *lane) close() {
	for _, q := range l.memory {
		l.release(q)
	}
	l.memory = nil
	if l.disk == nil {
		return
	}
	if err := l.disk.Close(); err != nil {
		l.log.Warn("could not close a spool file", "error", err)
	}
	l.gaveBack(0)
}
