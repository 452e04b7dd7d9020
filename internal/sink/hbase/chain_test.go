package hbase

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// valved sends nothing, but asks the valve, as hbase.Sender does for each request.
type valved struct {
	valve *valve
	went  func(p *hbase.Puts) error
}

func (v valved) Send(ctx context.Context, p *hbase.Puts) error {
	if _, err := v.valve.Open(ctx, "s", p.Pending()); err != nil {
		return err
	}
	rows, err := p.Pending(), v.went(p)
	v.valve.Done("s", hbase.Outcome{Rows: rows, Took: time.Millisecond})
	if err == nil {
		p.Reset() // nothing is pending any more
	}
	return err
}

func puts(t *testing.T, rows int) *hbase.Puts {
	t.Helper()
	p := hbase.NewPuts("f", []string{"q"}, 1)
	for i := range rows {
		p.BeginRow([]byte{byte(i >> 8), byte(i)})
		p.EndCell(0, append(p.Cell(0), "value"...))
		p.EndRow()
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGateIsAskedLast: the gate shuts while a request waits for its turn by the
// job's rate. It does not go out before the gate is open again, however long
// that takes, and no patience is lost by it.
func TestGateIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		shut := begin.Add(5 * time.Second)
		opens := shut.Add(10 * time.Minute) // ten times the patience
		c := Config{Table: "t", Rate: job.Rate{Rows: 100}, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)}
		c.Gate = func(context.Context) (until time.Time, err error) {
			if time.Now().After(shut) {
				time.Sleep(time.Until(opens))
			}
			return until, nil
		}
		s := &Sink{config: c}
		s.valve = newValve(4, s.gate)
		var went []time.Duration
		s.chain = newChain(valved{s.valve, func(*hbase.Puts) error {
			if went = append(went, time.Since(begin)); len(went) == 2 { // right after the long wait
				return failure.New(failure.Transient, context.DeadlineExceeded, "")
			}
			return nil
		}}, c, func(context.Context) error { return nil })
		for range 2 { // the first goes at once, on debt; the second waits for 10 seconds
			if err := s.deliver(t.Context(), puts(t, 1000)); err != nil {
				t.Error(err)
			}
		}
		if len(went) != 3 || went[0] != 0 || went[1] != opens.Sub(begin) {
			t.Errorf("requests went out after %v; the gate was shut from 5s to 10m5s", went)
		}
		if r := s.meter.Read(); r.Batches != 2 || r.Retries != 1 || r.InFlight != 0 {
			t.Errorf("%+v", r)
		}
	})
}
