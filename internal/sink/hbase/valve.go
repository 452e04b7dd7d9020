package hbase

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// valve lets requests out: at most some at a time to each region server, no
// faster than the server can take them nor than the job allows, and only while
// the gate is open.
type valve struct {
	inFlight  int
	gate      func(ctx context.Context) error
	pushbacks atomic.Int64

	mu      sync.Mutex
	servers map[string]*gauge
	cap     job.Rate
	rows    bucket
	bytes   bucket
}

var _ hbase.Valve = (*valve)(nil)

// gauge is the state of one server.
type gauge struct {
	batches  chan struct{} // a token for each batch that was filled for it
	requests chan struct{} // a token for each request under way
	pacer    *pacer        // under the valve's lock
}

func newValve(inFlight int, limit job.Rate, gate func(context.Context) error) *valve {
	v := &valve{inFlight: inFlight, gate: gate, servers: map[string]*gauge{}}
	v.setCap(limit)
	return v
}

// setCap changes the rate that all servers get together.
func (v *valve) setCap(limit job.Rate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cap = limit
	v.rows, v.bytes = bucket{at: time.Now()}, bucket{at: time.Now()}
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
// where it was.
func (v *valve) Open(ctx context.Context, server string, rows, bytes int) error {
	g := v.gauge(server)
	if err := take(ctx, g.requests); err != nil {
		return err
	}
	err := v.turn(ctx, g, rows, bytes)
	if err == nil {
		err = v.gate(ctx)
	}
	if err != nil {
		<-g.requests
	}
	return err
}

// turn waits as the pace and the job's rate want it. It looks again often, since
// both may change meanwhile.
func (v *valve) turn(ctx context.Context, g *gauge, rows, bytes int) error {
	for _, take := range []func(now time.Time) time.Duration{
		func(now time.Time) time.Duration { return g.pacer.take(rows, now) },
		func(now time.Time) time.Duration { return capped(&v.rows, v.cap.Rows, rows, now) },
		func(now time.Time) time.Duration { return capped(&v.bytes, v.cap.Bytes, bytes, now) },
	} {
		for {
			v.mu.Lock()
			wait := take(time.Now())
			v.mu.Unlock()
			if wait <= 0 {
				break
			}
			rest(ctx, wait)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// capped is the wait for a rate of the job; 0 is no limit.
func capped(b *bucket, rate int64, n int, now time.Time) time.Duration {
	if rate <= 0 {
		return 0
	}
	return min(b.take(float64(rate), n, now), paceTick)
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
