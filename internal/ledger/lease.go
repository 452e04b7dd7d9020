package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// The times of a lease. A holder beats every beatEvery. Whoever wants a held
// lease watches it: a beat means that the holder lives, no beat for leaseTTL
// that it is dead. So the clocks of the machines need not agree. A holder that
// has not beaten for sureFor stops what it does, see [Lease.Sure], until a beat
// shows that nobody has taken the lease meanwhile, for giveUpAfter at most. A region server
// may well be busy for many seconds with the run's own puts, and a cluster be
// away while its servers start again, so the times are not shorter.
const (
	beatEvery   = 5 * time.Second
	beatTimeout = 10 * time.Second
	sureFor     = 25 * time.Second
	leaseTTL    = 40 * time.Second
	giveUpAfter = 2 * time.Minute
	watchStep   = 500 * time.Millisecond
)

// ErrLost is the cause of a lease's context that ended because the lease was
// lost: another process has taken it, or the ledger could not be reached.
var ErrLost = errors.New("the lease on the job and date was lost")

// An Owner says who holds a lease, for the message to who does not get it.
type Owner struct {
	Run  string `json:"run"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

type leaseRow struct {
	Owner
	Since time.Time `json:"since"`
	// Beat grows with each renewal, so that every renewal changes the row.
	Beat int64 `json:"beat"`
	// Free says that the holder has let go.
	Free bool `json:"free,omitempty"`
}

// A Lease is the right to run a job for a date. It renews itself until it is
// released.
type Lease struct {
	ledger *Ledger
	key    string
	over   context.Context // ends with the lease
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	row  leaseRow
	held []byte // the row as stored

	sureMu sync.Mutex
	sure   time.Time     // when the lease was last known to be ours
	beaten chan struct{} // closed by the next beat
}

// Acquire takes the lease of a job and date. If another process holds it the
// error has class Locked; that takes one beat to find out. The lease of a dead
// holder is taken over, which takes its time to live. The returned context ends
// with ctx, or with cause ErrLost when the lease is lost.
func (l *Ledger) Acquire(ctx context.Context, job, date string, owner Owner) (*Lease, context.Context, error) {
	k := key("lease", job, date)
	old, err := l.store.Get(ctx, k)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the lease: %w", err)
	}
	if old, err = l.watch(ctx, k, old); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	row := leaseRow{Owner: owner, Since: l.now().UTC()}
	data, err := json.Marshal(row)
	if err != nil {
		return nil, nil, err
	}
	ok, err := l.store.CompareAndPut(ctx, k, old, data)
	if err != nil {
		return nil, nil, fmt.Errorf("taking the lease: %w", err)
	}
	if !ok {
		return nil, nil, failure.Errorf(failure.Locked, "another run of job %s for %s has just started", job, date)
	}
	lease := &Lease{ledger: l, key: k, row: row, held: data, sure: began, beaten: make(chan struct{})}
	lease.over, lease.cancel = context.WithCancelCause(ctx)
	lease.wg.Go(func() { lease.beat(lease.over) })
	return lease, lease.over, nil
}

// watch returns the row to replace once nobody alive holds the lease.
func (l *Ledger) watch(ctx context.Context, k string, old []byte) ([]byte, error) {
	if old == nil {
		return nil, nil
	}
	var row leaseRow
	if err := json.Unmarshal(old, &row); err != nil {
		return nil, broken(k, err)
	}
	if row.Free {
		return old, nil
	}
	l.log.Info("the lease is held, watching whether its holder lives",
		"run", row.Run, "host", row.Host, "pid", row.PID, "for", leaseTTL.String())
	for deadline := time.Now().Add(leaseTTL); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(watchStep):
		}
		now, err := l.store.Get(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("watching the lease: %w", err)
		}
		if now == nil || (json.Unmarshal(now, &row) == nil && row.Free) {
			return now, nil // let go while we watched
		}
		if !bytes.Equal(now, old) {
			return nil, failure.New(failure.Locked,
				fmt.Errorf("run %s holds the lease of this job and date since %s (host %s, pid %d)",
					row.Run, row.Since.Format(time.RFC3339), row.Host, row.PID),
				"let it finish; a run that was killed loses its lease by itself")
		}
	}
	l.log.Warn("the lease's holder gives no sign of life, taking over", "run", row.Run, "host", row.Host, "pid", row.PID)
	return old, nil
}

func (l *Lease) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := l.Renew(ctx)
		switch age, _ := l.age(); {
		case err == nil:
		case errors.Is(err, ErrLost), age > giveUpAfter:
			l.cancel(failure.New(failure.Transient, fmt.Errorf("%w: %w", ErrLost, err), ""))
			return
		case ctx.Err() == nil:
			l.ledger.log.Warn("the lease could not be renewed yet", "for", age.Round(time.Second).String(), "error", err)
		}
	}
}

// Renew beats once. An error that is ErrLost says that somebody else has the
// lease; after any other it is still unknown.
func (l *Lease) Renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, beatTimeout)
	defer stop()
	began := time.Now()
	next := l.row
	next.Beat++
	if err := l.store(ctx, next); err != nil {
		return err
	}
	l.sureMu.Lock()
	defer l.sureMu.Unlock()
	l.sure = began
	close(l.beaten)
	l.beaten = make(chan struct{})
	return nil
}

// age is the time since the lease was last known to be ours, and a channel that
// the next beat closes. A process that was stopped counts the time; so does a
// machine that slept, whose monotonic clock may not: hence the clock on the wall, too.
func (l *Lease) age() (time.Duration, <-chan struct{}) {
	l.sureMu.Lock()
	defer l.sureMu.Unlock()
	now := time.Now()
	return max(now.Sub(l.sure), now.Round(0).Sub(l.sure.Round(0))), l.beaten
}

// Sure returns at once while the lease is known to be held, and otherwise waits
// for a beat. Whatever must not happen once another process may have the lease
// asks it first, and is over at the time that it gives, before which nobody else
// can have the lease: a process that was stopped for a minute learns here that it
// was, before it does anything else. The error is the cause of the end of ctx or
// of the lease.
func (l *Lease) Sure(ctx context.Context) (until time.Time, err error) {
	for waited := false; ; waited = true {
		age, beaten := l.age()
		if l.over.Err() != nil {
			return until, context.Cause(l.over)
		}
		if age < sureFor {
			if waited {
				l.ledger.log.Info("the lease is held still, going on")
			}
			// Whoever watches the lease does so for its time to live after the last beat.
			return time.Now().Add(leaseTTL - age), context.Cause(ctx)
		}
		if !waited {
			l.ledger.log.Warn("the lease could not be renewed, waiting", "for", age.Round(time.Second).String())
		}
		select {
		case <-beaten:
		case <-l.over.Done():
		case <-ctx.Done():
			return until, context.Cause(ctx)
		}
	}
}

func (l *Lease) store(ctx context.Context, next leaseRow) error {
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	ok, err := l.ledger.store.CompareAndPut(ctx, l.key, l.held, data)
	if err != nil {
		return err // it may be stored: the next renewal writes the same row again
	}
	if !ok {
		return ErrLost
	}
	l.row, l.held = next, data
	return nil
}

// Release lets the lease go. It is called once, with a context that is not yet
// over; an error leaves the lease to its time to live.
func (l *Lease) Release(ctx context.Context) error {
	l.cancel(context.Canceled)
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.row
	next.Beat++
	next.Free = true
	err := l.store(ctx, next)
	if !errors.Is(err, ErrLost) {
		return err
	}
	// The last beat was cut short and may be stored all the same.
	now, getErr := l.ledger.store.Get(ctx, l.key)
	var row leaseRow
	if getErr != nil || json.Unmarshal(now, &row) != nil || row.Owner != l.row.Owner {
		return err
	}
	l.held, next.Beat = now, row.Beat+1
	return l.store(ctx, next)
}
