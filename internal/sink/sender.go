package sink

import (
	"context"
	"sync"
	"time"
)

// A Batch is what a [Sender] sends: rows of which the receiver may acknowledge
// some and not others. What it has acknowledged is not pending any more.
type Batch interface {
	// Rows, Cells and Bytes are those of the whole batch, as [Ack] counts.
	Rows() int64
	Cells() int64
	Bytes() int64
	// Pending is the number of rows that are not acknowledged, and PendingSize
	// their size in bytes on the way to the receiver. Both cost nothing.
	Pending() int
	PendingSize() int
}

// A Sender sends what is pending of a batch, once. The error is nil if nothing is
// pending any more, and else classified: [failure.IsTransient] tells whether
// another attempt is of use. After the end of ctx it is any error. A sender is
// safe for concurrent use, a batch is not.
//
// [Retry], [Throttle] and [Meter] are senders around another one. A sink for a
// receiver that takes batches brings the innermost and builds a chain: Retry,
// in it Meter, which sees each attempt, in it Throttle, which holds each back.
type Sender[B Batch] interface {
	Send(ctx context.Context, b B) error
}

// course is what happens to a batch on its way through a [Retry]; the context
// of each attempt holds it.
type course struct {
	attempt int // of now, from 1; changed between attempts only

	mu      sync.Mutex
	further time.Time     // when the batch got further last
	excused time.Duration // waited since then for something else than the receiver
	until   time.Time     // the end of what is in excused
}

type courseKey struct{}

// courseOf is nil without a [Retry] around.
func courseOf(ctx context.Context) *course {
	c, _ := ctx.Value(courseKey{}).(*course)
	return c
}

// Excuse tells the [Retry] around a sender that an attempt has waited for d until
// now, and not for the receiver, so that its patience is not used up by that.
func Excuse(ctx context.Context, d time.Duration) {
	c := courseOf(ctx)
	if c == nil || d <= 0 {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	// The requests of one attempt may wait side by side.
	from := now.Add(-d)
	for _, t := range []time.Time{c.further, c.until} {
		if from.Before(t) {
			from = t
		}
	}
	c.excused += now.Sub(from)
	c.until = now
}

// advance notes that the batch got further.
func (c *course) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.further, c.excused = time.Now(), 0
}

// idle is how long the receiver had and the batch got no further.
func (c *course) idle() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.further) - c.excused
}
