package sink

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	// Suspicion is how long a batch may get no further before the receiver's
	// state is looked at: rows for a disabled table would be retried for nothing.
	Suspicion = 5 * time.Second
	// lonely is how many times the patience a batch is retried that gets no
	// further while others do.
	lonely = 5
)

// Retry sends a batch by another sender until every row is acknowledged, an error is
// permanent, the context ends, or its patience does. All batches of one
// receiver go through one Retry, since the progress of each is a sign of life.
type Retry[B Batch] struct {
	Next Sender[B]
	// Receiver is named in error texts: "table traffic".
	Receiver string
	// Patience is how long a batch is retried while no row of any is acknowledged.
	Patience time.Duration
	// Look, if set, is asked when a batch gets no further; its error ends the batch.
	Look func(ctx context.Context) error
	// Log gets a line for each attempt that failed.
	Log *slog.Logger

	mu       sync.Mutex
	progress time.Time // when rows of any batch were acknowledged last
}

// Send sends a batch as often as it takes.
func (r *Retry[B]) Send(ctx context.Context, b B) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longPause), backoff.WithMaxElapsedTime(0))
	c := &course{further: time.Now()}
	sending := context.WithValue(ctx, courseKey{}, c)
	looked := c.further
	for c.attempt = 1; ; c.attempt++ {
		pending := b.Pending()
		err := r.Next.Send(sending, b)
		if err == nil && b.Pending() > 0 { // no sender does that; what is not proven is not done
			err = failure.Errorf(failure.Transient, "%d rows were not acknowledged, and nobody says why", b.Pending())
		}
		if b.Pending() < pending {
			c.advance()
			r.Alive()
			pause.Reset()
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return r.ended(ctx)
		case !failure.IsTransient(err):
			return err
		case r.givesUp(c.idle()):
			return failure.New(failure.Transient, fmt.Errorf("%d of %d rows of a batch for %s were not acknowledged, and no row for %v, %d attempts: %w",
				b.Pending(), b.Rows(), r.Receiver, r.Patience, c.attempt, err), failure.Remedy(err))
		case r.Look != nil && c.idle() > Suspicion && time.Since(looked) > Suspicion:
			if err := r.Look(ctx); err != nil {
				return err
			}
			looked = time.Now()
		}
		wait := pause.NextBackOff()
		r.Log.Warn("rows were not acknowledged and are sent again", "attempt", c.attempt,
			"rows", b.Rows(), "pending", b.Pending(), "pause", wait.Round(time.Millisecond).String(), "err", err)
		if sleep(ctx, wait, nil) != nil {
			return r.ended(ctx)
		}
	}
}

func (r *Retry[B]) ended(ctx context.Context) error {
	return fmt.Errorf("write to %s: %w", r.Receiver, context.Cause(ctx))
}

// Alive notes a sign of life of the receiver, as acknowledged rows are one, or a
// reason why there could be none: all batches are given patience anew, up to the
// bound for a batch that gets no further alone.
func (r *Retry[B]) Alive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = time.Now()
}

// givesUp tells whether the patience with a batch is over that has got no
// further for some time.
func (r *Retry[B]) givesUp(idle time.Duration) bool {
	r.mu.Lock()
	all := time.Since(r.progress)
	r.mu.Unlock()
	return idle > r.Patience && all > r.Patience || idle > lonely*r.Patience
}
