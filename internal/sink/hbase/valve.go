package hbase

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

// valve lets requests out: at most some at a time to each region server, no
// faster than the server can take them, and only while the gate is open.
type valve struct {
	inFlight  int
	gate      func(ctx context.Context) (time.Time, error)
	pushbacks atomic.Int64

	mu      sync.Mutex
	servers map[string]*gauge
}

var _ hbase.Valve = (*valve)(nil)

// gauge is the state of one server.
type gauge struct {
	batches  chan struct{} // a token for each batch that was filled for it
	requests chan struct{} // a token for each request under way
	pacer    *pacer        // under the valve's lock
}

func newValve(inFlight int, gate func(context.Context) (time.Time, error)) *valve {
	return &valve{inFlight: inFlight, gate: gate, servers: map[string]*gauge{}}
}

// pace is the rate that the slowest server gets, in rows a second, 0 if none is limited.
func (v *valve) pace() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	least := math.Inf(1)
	for _, g := range v.servers {
		least = min(least, g.pacer.limit)
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return int64(least)
}

func (v *valve) gauge(server string) *gauge {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := v.servers[server]
	if g == nil {
		g = &gauge{make(chan struct{}, v.inFlight), make(chan struct{}, v.inFlight), newPacer(time.Now())}
		v.servers[server] = g
	}
	return g
}

// enter waits until a batch for a server may be started; leave ends that.
func (v *valve) enter(ctx context.Context, server string) (leave func(), err error) {
	g := v.gauge(server)
	return func() { <-g.batches }, take(ctx, g.batches)
}

// Open waits for a place at the server and for its turn. Rows whose region went
// to another server meanwhile wait for a place there, though their batch has one
// where it was. The gate is asked last: it may have shut during any wait before.
func (v *valve) Open(ctx context.Context, server string, rows int) (until time.Time, err error) {
	g := v.gauge(server)
	if err := take(ctx, g.requests); err != nil {
		return until, err
	}
	err = v.turn(ctx, g, rows)
	if err == nil {
		until, err = v.gate(ctx)
	}
	if err != nil {
		<-g.requests
	}
	return until, err
}

// turn waits as the server's pace wants it. It looks again often, since that may
// change meanwhile.
func (v *valve) turn(ctx context.Context, g *gauge, rows int) error {
	for {
		v.mu.Lock()
		wait := g.pacer.take(rows, time.Now())
		v.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Done gives the place back and lets the server's pacer learn.
func (v *valve) Done(server string, o hbase.Outcome) {
	g := v.gauge(server)
	v.mu.Lock()
	g.pacer.done(o, time.Now())
	v.mu.Unlock()
	if o.Pushback {
		v.pushbacks.Add(1)
	}
	<-g.requests
}

func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
