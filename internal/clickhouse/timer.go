package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errTimer is the cause of a context that [untimed] ended.
var errTimer = errors.New("no answer in time")

// untimed gives a context that ends with ctx or after d, and that shows no
// deadline: from a deadline the driver would make a max_execution_time of its
// own and override the job's.
func untimed(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	timer := time.AfterFunc(d, func() { cancel(errTimer) })
	return out, func() {
		unlink()
		timer.Stop()
		cancel(context.Canceled)
	}
}

// timerCause tells a time-out of ours from a cancellation by the caller: the
// driver reports both as "context canceled".
func timerCause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimer) {
		return fmt.Errorf("%w: %w", errTimer, context.DeadlineExceeded)
	}
	return err
}
