// Package report shows a run: while it goes on, as one live line on a terminal
// or as log lines elsewhere, and as metrics for Prometheus; at its end as a table
// or as JSON. It is told numbers and texts and knows no other package of the
// module but failure. What it is told must hold no secrets: it shows all of it.
package report

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Phase is a step of a run.
type Phase string

// The phases, in their order.
const (
	Preflight Phase = "preflight"
	Plan      Phase = "plan"
	Scatter   Phase = "scatter"
	Verify    Phase = "verify"
	Publish   Phase = "publish"
)

// Progress counts what a run has done. The zero value is ready; all methods
// are safe for concurrent use and cheap enough to be called for every block.
type Progress struct {
	estimatedRows, rowsRead, bytesRead      atomic.Int64
	estimatedResults                        atomic.Int64
	resultRows                              atomic.Int64
	rowsWritten, cellsWritten, bytesWritten atomic.Int64
	sourceRetries, sinkRetries              atomic.Int64
	sinkPushbacks, sinkPace                 atomic.Int64
	spooledBytes                            atomic.Int64
	lastSuccess                             atomic.Int64 // Unix seconds

	mu            sync.Mutex
	slices        Slices
	phase         Phase
	phaseBegan    time.Time
	finishedTimes []PhaseTime
}

// Slices counts the slices of a phase by state.
type Slices struct {
	Total, Running, Done int
}

// Waiting is the number of slices that nobody has begun.
func (s Slices) Waiting() int { return max(0, s.Total-s.Running-s.Done) }

// PhaseTime is how long a phase took.
type PhaseTime struct {
	Phase   Phase   `json:"phase"`
	Seconds float64 `json:"seconds"`
}

// Begin ends the phase under way and begins the next. Slices start from zero.
func (p *Progress) Begin(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	p.phase, p.phaseBegan = phase, time.Now()
	p.slices = Slices{}
}

// End ends the last phase. It may be called more than once.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	p.phase = ""
}

func (p *Progress) endLocked() {
	if p.phase == "" {
		return
	}
	p.finishedTimes = append(p.finishedTimes, PhaseTime{p.phase, time.Since(p.phaseBegan).Seconds()})
}

// PlanSlices sets the number of slices of the phase. A slice that splits adds
// its parts by [Progress.AddSlices].
func (p *Progress) PlanSlices(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slices.Total = total
}

// AddSlices changes the number of slices of the phase.
func (p *Progress) AddSlices(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slices.Total += n
}

// SliceBegun tells that an attempt of a slice began; exactly one of SliceDone
// and SliceFailed follows.
func (p *Progress) SliceBegun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slices.Running++
}

// SliceDone tells that a slice is done for good.
func (p *Progress) SliceDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slices.Running--
	p.slices.Done++
}

// SliceFailed tells that an attempt failed; the slice waits again.
func (p *Progress) SliceFailed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slices.Running--
}

// Estimate sets what the scatter phase will have done at its end: the rows that
// the servers read (rows of the source times the scans over them), and the
// rows of the result; 0 where nothing is known.
func (p *Progress) Estimate(rowsRead, rowsWritten int64) {
	p.estimatedRows.Store(rowsRead)
	p.estimatedResults.Store(rowsWritten)
}

// Read adds rows and uncompressed bytes that the servers read, as they report it.
func (p *Progress) Read(rows, bytes int64) {
	p.rowsRead.Add(rows)
	p.bytesRead.Add(bytes)
}

// Received adds result rows that reached the mover.
func (p *Progress) Received(rows int64) { p.resultRows.Add(rows) }

// Written adds what the sink acknowledged.
func (p *Progress) Written(rows, cells, bytes int64) {
	p.rowsWritten.Add(rows)
	p.cellsWritten.Add(cells)
	p.bytesWritten.Add(bytes)
}

// SourceRetried and SinkRetried count attempts after the first, of a slice
// and of a batch.
func (p *Progress) SourceRetried() { p.sourceRetries.Add(1) }

// SinkRetried counts a batch that was sent again.
func (p *Progress) SinkRetried() { p.sinkRetries.Add(1) }

// SinkPushedBack counts requests that the sink refused because it was busy.
func (p *Progress) SinkPushedBack(n int64) { p.sinkPushbacks.Add(n) }

// SinkPaced tells the rate, in rows a second, to which the slowest server of the
// sink is limited at present; 0 is no limit.
func (p *Progress) SinkPaced(rows int64) { p.sinkPace.Store(rows) }

// Spooled adds bytes of rows that were written to the spool on disk.
func (p *Progress) Spooled(bytes int64) { p.spooledBytes.Add(bytes) }

// Succeeded records the time of a publication, for the metrics.
func (p *Progress) Succeeded(at time.Time) { p.lastSuccess.Store(at.Unix()) }

// A Snapshot is the state of a Progress at one moment.
type Snapshot struct {
	// Phase is the phase under way, empty between runs; Elapsed is its age.
	Phase   Phase
	Elapsed time.Duration
	// Phases are the times of the phases so far, the one under way included.
	Phases []PhaseTime
	Slices Slices
	// EstimatedRows and EstimatedResults are 0 when nothing is known.
	EstimatedRows, RowsRead, BytesRead      int64
	EstimatedResults                        int64
	ResultRows                              int64
	RowsWritten, CellsWritten, BytesWritten int64
	SourceRetries, SinkRetries              int64
	SinkPushbacks, SinkPace                 int64
	SpooledBytes                            int64
	// LastSuccess is in Unix seconds, 0 when there was none.
	LastSuccess int64
}

// Snapshot reads the counters. Counters that move together may be apart by
// what is being counted just then.
func (p *Progress) Snapshot() Snapshot {
	p.mu.Lock()
	s := Snapshot{Phase: p.phase, Slices: p.slices}
	s.Phases = append(s.Phases, p.finishedTimes...)
	if p.phase != "" {
		s.Elapsed = time.Since(p.phaseBegan)
		s.Phases = append(s.Phases, PhaseTime{p.phase, s.Elapsed.Seconds()})
	}
	p.mu.Unlock()
	s.EstimatedRows, s.RowsRead, s.BytesRead = p.estimatedRows.Load(), p.rowsRead.Load(), p.bytesRead.Load()
	s.EstimatedResults, s.ResultRows = p.estimatedResults.Load(), p.resultRows.Load()
	s.RowsWritten, s.CellsWritten, s.BytesWritten = p.rowsWritten.Load(), p.cellsWritten.Load(), p.bytesWritten.Load()
	s.SourceRetries, s.SinkRetries = p.sourceRetries.Load(), p.sinkRetries.Load()
	s.SinkPushbacks, s.SinkPace = p.sinkPushbacks.Load(), p.sinkPace.Load()
	s.SpooledBytes = p.spooledBytes.Load()
	s.LastSuccess = p.lastSuccess.Load()
	return s
}

// Fraction is how much of the phase is done, 0 to 1, and whether that is known:
// while scattering the mean of what is read and what is written, as far as
// there are estimates, else the slices that are done.
func (s Snapshot) Fraction() (float64, bool) {
	bySlices := 0.0
	if s.Slices.Total > 0 {
		bySlices = float64(s.Slices.Done) / float64(s.Slices.Total)
	}
	if s.Phase != Scatter || bySlices == 1 {
		return bySlices, s.Slices.Total > 0
	}
	sum, parts := 0.0, 0.0
	add := func(done, all int64) {
		if all > 0 {
			sum += min(1, float64(done)/float64(all))
			parts++
		}
	}
	add(s.RowsRead, s.EstimatedRows)
	add(s.RowsWritten, s.EstimatedResults)
	if parts == 0 {
		return bySlices, s.Slices.Total > 0
	}
	const almost = 0.99 // estimates may be low: never quite all before the slices are
	return max(bySlices, min(almost, sum/parts)), true
}

// ETA is the time to the end of the phase at its pace so far, and whether
// there is enough to tell it by.
func (s Snapshot) ETA() (time.Duration, bool) {
	const enough = 0.01
	f, ok := s.Fraction()
	if !ok || f < enough || s.Elapsed <= 0 {
		return 0, false
	}
	return time.Duration(float64(s.Elapsed) * (1 - f) / f), true
}
