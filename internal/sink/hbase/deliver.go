package hbase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// lookTime bounds a look at the table's state.
const lookTime = 10 * time.Second

// chain is the way of a batch to its servers, from the outside in.
type chain struct {
	retry    *sink.Retry[*hbase.Puts]
	meter    *sink.Meter[*hbase.Puts]
	throttle *sink.Throttle[*hbase.Puts]
}

func newChain(sender sink.Sender[*hbase.Puts], c Config, look func(context.Context) error) chain {
	throttle := sink.NewThrottle(sender, c.Rate)
	meter := &sink.Meter[*hbase.Puts]{Next: throttle}
	return chain{&sink.Retry[*hbase.Puts]{Next: meter, Receiver: "table " + c.Table, Patience: c.Patience,
		Look: look, Log: c.Log.With("table", c.Table)}, meter, throttle}
}

// deliver sends a batch until every row is acknowledged, an error is
// permanent, the writer's context ends, or the sink's patience does. Rows that
// are acknowledged are not sent again.
func (s *Sink) deliver(ctx context.Context, p *hbase.Puts) error {
	if err := p.Seal(); err != nil {
		return s.sealError(err)
	}
	return s.retry.Send(ctx, p)
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
