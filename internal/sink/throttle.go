package sink

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// saved is the time whose share of a rate may be used at once after a silence.
const saved = 250 * time.Millisecond

// Throttle lets no more rows and bytes a second through to another sender than
// a rate. What is pending counts at each attempt, so rows that are sent twice
// count twice. Requests go in the order in which they came.
//
// A batch that is larger than what may go at once goes all the same, and those
// after it wait for longer: a rate is held on average, whatever the batches' size.
type Throttle[B Batch] struct {
	next Sender[B]
	turn chan struct{} // a token for the request that goes next

	mu          sync.Mutex
	rows, bytes *rate.Limiter
	changed     chan struct{} // closed when the rate changes
}

// NewThrottle makes a throttle; zero fields of the rate are no limit.
func NewThrottle[B Batch](next Sender[B], r job.Rate) *Throttle[B] {
	t := &Throttle[B]{next: next, turn: make(chan struct{}, 1), changed: make(chan struct{}),
		rows: rate.NewLimiter(rate.Inf, 0), bytes: rate.NewLimiter(rate.Inf, 0)}
	t.SetRate(r)
	return t
}

// SetRate changes the rate, for requests that wait, too. It may be called at any time.
func (t *Throttle[B]) SetRate(r job.Rate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	limit(t.rows, r.Rows, now)
	limit(t.bytes, r.Bytes, now)
	close(t.changed)
	t.changed = make(chan struct{})
}

func limit(l *rate.Limiter, each int64, now time.Time) {
	if each <= 0 {
		l.SetLimitAt(now, rate.Inf)
		return
	}
	l.SetLimitAt(now, rate.Limit(each))
	l.SetBurstAt(now, int(float64(each)*saved.Seconds()))
}

// Send sends a batch when it is its turn.
func (t *Throttle[B]) Send(ctx context.Context, b B) error {
	begin := time.Now()
	if waited, err := t.wait(ctx, b.Pending(), b.PendingSize()); err != nil {
		return err
	} else if waited {
		Excuse(ctx, time.Since(begin))
	}
	return t.next.Send(ctx, b)
}

// wait waits until a request may go.
func (t *Throttle[B]) wait(ctx context.Context, rows, bytes int) (waited bool, err error) {
	select {
	case t.turn <- struct{}{}:
	default:
		waited = true
		select {
		case t.turn <- struct{}{}:
		case <-ctx.Done():
			return true, context.Cause(ctx)
		}
	}
	defer func() { <-t.turn }()
	for {
		d, changed := t.take(rows, bytes, time.Now())
		if d <= 0 {
			return waited, nil
		}
		waited = true
		if err := sleep(ctx, d, changed); err != nil {
			return true, err
		}
	}
}

// take lets a request through, or tells for how long the debts are not paid if
// the rate does not change.
func (t *Throttle[B]) take(rows, bytes int, now time.Time) (wait time.Duration, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait := max(debt(t.rows, now), debt(t.bytes, now)); wait > 0 {
		return wait, t.changed
	}
	spend(t.rows, rows, now)
	spend(t.bytes, bytes, now)
	return 0, nil
}

// debt is how long it takes until a limiter lets something through again.
func debt(l *rate.Limiter, now time.Time) time.Duration {
	if l.Limit() == rate.Inf {
		return 0
	}
	return time.Duration(-l.TokensAt(now) / float64(l.Limit()) * float64(time.Second))
}

// spend takes n from a limiter, which refuses what is more than its burst.
func spend(l *rate.Limiter, n int, now time.Time) {
	if l.Limit() == rate.Inf {
		return
	}
	burst := l.Burst()
	if n <= burst {
		l.ReserveN(now, n)
		return
	}
	l.SetBurstAt(now, n)
	l.ReserveN(now, n)
	l.SetBurstAt(now, burst)
}

// sleep waits for a time, a change, if changed is not nil, or the end of ctx, which
// is an error.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
