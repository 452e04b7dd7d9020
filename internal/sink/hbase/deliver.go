package hbase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	// suspicion is how long a batch may get no further before the table's state
	// is looked at: rows for a disabled table would be retried for nothing.
	suspicion = 5 * time.Second
	// lookTime bounds that look.
	lookTime = 10 * time.Second
	// lonely is how many times the sink's patience a batch is retried that gets
	// no further while others do.
	lonely = 5
)

// deliver sends a batch until every row is acknowledged, an error is
// permanent, the writer's context ends, or the sink's patience does. Rows that
// are acknowledged are not sent again.
func (s *Sink) deliver(ctx context.Context, p *hbase.Puts) error {
	if err := p.Seal(); err != nil {
		return s.sealError(err)
	}
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longPause), backoff.WithMaxElapsedTime(0))
	further := time.Now() // when this batch got further last
	looked := further
	for attempt := 1; ; attempt++ {
		pending := p.Pending()
		err := s.sender.Send(ctx, p)
		if p.Pending() < pending {
			further = time.Now()
			s.progress.Store(further.UnixNano())
			pause.Reset()
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("write to %s: %w", s.config.Table, context.Cause(ctx))
		case !failure.IsTransient(err):
			return err
		case s.givesUp(further):
			return failure.New(failure.Transient, fmt.Errorf("%d of %d rows of a batch for table %s were not acknowledged, and no row for %v, %d attempts: %w",
				p.Pending(), p.Rows(), s.config.Table, s.config.Patience, attempt, err), failure.Remedy(err))
		case time.Since(further) > suspicion && time.Since(looked) > suspicion:
			if err := s.look(ctx); err != nil {
				return err
			}
			looked = time.Now()
		}
		s.retries.Add(1)
		wait := pause.NextBackOff()
		s.config.Log.Warn("rows were not acknowledged and are sent again", "table", s.config.Table, "attempt", attempt,
			"rows", p.Rows(), "pending", p.Pending(), "pause", wait.Round(time.Millisecond).String(), "err", err)
		rest(ctx, wait)
	}
}

// givesUp tells whether the patience with a batch that got further last at
// some time is over.
func (s *Sink) givesUp(further time.Time) bool {
	all := time.Unix(0, s.progress.Load())
	return time.Since(further) > s.config.Patience && time.Since(all) > s.config.Patience || time.Since(further) > lonely*s.config.Patience
}

// look fails if the table is disabled.
func (s *Sink) look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if enabled, err := s.config.Client.Enabled(limited, s.config.Table); err != nil || enabled {
		return nil // the next attempt will tell
	}
	return failure.New(failure.Sink, fmt.Errorf("write to %s: %w", s.config.Table, errDisabled),
		fmt.Sprintf("enable '%s' in the HBase shell, then run the same command again", s.config.Table))
}

var errDisabled = errors.New("the table is disabled or does not exist")

// sealError explains two rows with one key.
func (s *Sink) sealError(err error) error {
	d, ok := errors.AsType[*hbase.DuplicateKeyError](err)
	if !ok {
		return err
	}
	return failure.New(failure.Source, fmt.Errorf("one slice gave two rows for one key, one of which would be lost: %w: %s and %s",
		d, s.describe(d.Values[0]), s.describe(d.Values[1])),
		"the rows differ in something that the key does not show; look at the dimension's expression")
}

// describe shows a row's metrics.
func (s *Sink) describe(values [][]byte) string {
	metrics, err := s.config.Cells.Decode(func(i int) ([]byte, bool) { return values[i], values[i] != nil })
	if err != nil {
		return fmt.Sprintf("%q", values)
	}
	var b strings.Builder
	for i, v := range metrics {
		if i > 0 {
			b.WriteString(", ")
		}
		if len(metrics) == len(s.config.Columns) {
			b.WriteString(s.config.Columns[i] + " = ")
		}
		fmt.Fprint(&b, v)
	}
	return "(" + b.String() + ")"
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
