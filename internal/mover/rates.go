package mover

import (
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// Rates change the cap on what each HBase cluster gets a second while a run is
// under way. The zero value leaves the job's. It is safe for concurrent use.
type Rates struct {
	mu    sync.Mutex
	given *job.Rate // nil: the job's
	sinks []rated   // that hear of a new rate
}

// rated is a sink whose rate can be changed while it is used.
type rated interface{ SetRate(r job.Rate) }

// Set changes the rate for what is under way and what is still to come.
func (r *Rates) Set(rate job.Rate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = &rate
	for _, s := range r.sinks {
		s.SetRate(rate)
	}
}

// add makes a sink hear of changes, the last one included; r may be nil.
func (r *Rates) add(s rated) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sinks = append(r.sinks, s)
	if r.given != nil {
		s.SetRate(*r.given)
	}
}
