package hbase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	// suspicion is how long an attempt may last before the table's state is
	// looked at: rows for a disabled table would be retried for nothing.
	suspicion = 5 * time.Second
)

// deliver sends a batch until every row is acknowledged, an error is
// permanent, the writer's context ends, or the sink's patience does. Rows that
// are acknowledged are not sent again.
func (s *Sink) deliver(ctx context.Context, p *hbase.Puts) error {
	if err := p.Seal(); err != nil {
		return s.sealError(err)
	}
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longPause), backoff.WithMaxElapsedTime(0))
	end := time.Now().Add(s.config.Patience)
	for attempt := 1; ; attempt++ {
		var err error
		if s.config.Gate != nil {
			err = s.config.Gate(ctx)
		}
		if err == nil {
			err = s.attempt(ctx, p, end)
		}
		if err == nil {
			return nil
		}
		wait := pause.NextBackOff()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("write to %s: %w", s.config.Table, context.Cause(ctx))
		case !failure.IsTransient(err):
			return err
		case time.Now().Add(wait).After(end):
			return failure.New(failure.Transient, fmt.Errorf("%d of %d rows of a batch for table %s were not acknowledged within %v, %d attempts: %w",
				p.Pending(), p.Rows(), s.config.Table, s.config.Patience, attempt, err), failure.Remedy(err))
		}
		s.retries.Add(1)
		s.config.Log.Warn("rows were not acknowledged and are sent again", "table", s.config.Table, "attempt", attempt,
			"rows", p.Rows(), "pending", p.Pending(), "err", err)
		rest(ctx, wait)
	}
}

// attempt sends what is pending once. Within an attempt gohbase sends again
// what it knows to be worth it; its time is bounded by the context.
func (s *Sink) attempt(ctx context.Context, p *hbase.Puts, end time.Time) error {
	until := time.Now().Add(s.config.Attempt)
	if until.After(end) {
		until = end
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	watch := time.AfterFunc(suspicion, func() {
		if enabled, err := s.config.Client.Enabled(limited, s.config.Table); err == nil && !enabled {
			stop(errDisabled)
		}
	})
	defer watch.Stop()
	err := s.config.Client.SendPuts(limited, p)
	if err != nil && errors.Is(context.Cause(ctx), errDisabled) {
		return failure.New(failure.Sink, fmt.Errorf("write to %s: %w", s.config.Table, errDisabled),
			fmt.Sprintf("enable '%s' in the HBase shell, then run the same command again", s.config.Table))
	}
	return err
}

var errDisabled = errors.New("the table is disabled or does not exist")

// sealError explains two rows with one key.
func (s *Sink) sealError(err error) error {
	d, ok := errors.AsType[*hbase.DuplicateKeyError](err)
	if !ok {
		return err
	}
	return failure.New(failure.Source, fmt.Errorf("one slice gave two rows for one key, one of which would be lost: %w", d),
		"the rows differ in something that the key does not show; look at the dimension's expression")
}

// rest waits, or returns when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
