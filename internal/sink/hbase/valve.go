package hbase

import (
	"context"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

// valve lets at most some requests be under way at each region server.
type valve struct {
	inFlight int
	gate     func(ctx context.Context) error // may be nil

	mu      sync.Mutex
	servers map[string]*gauge
}

var _ hbase.Valve = (*valve)(nil)

// gauge is the state of one server.
type gauge struct {
	batches  chan struct{} // a token for each batch that was filled for it
	requests chan struct{} // a token for each request under way
}

func newValve(inFlight int, gate func(context.Context) error) *valve {
	return &valve{inFlight: inFlight, gate: gate, servers: map[string]*gauge{}}
}

func (v *valve) gauge(server string) *gauge {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := v.servers[server]
	if g == nil {
		g = &gauge{make(chan struct{}, v.inFlight), make(chan struct{}, v.inFlight)}
		v.servers[server] = g
	}
	return g
}

// enter waits until a batch for a server may be started; leave ends that.
func (v *valve) enter(ctx context.Context, server string) (leave func(), err error) {
	g := v.gauge(server)
	return func() { <-g.batches }, take(ctx, g.batches)
}

// Open waits for a place at the server. Rows whose region went to another server
// meanwhile wait for a place there, though their batch has one where it was.
func (v *valve) Open(ctx context.Context, server string, _, _ int) error {
	g := v.gauge(server)
	if err := take(ctx, g.requests); err != nil || v.gate == nil {
		return err
	}
	err := v.gate(ctx)
	if err != nil {
		<-g.requests
	}
	return err
}

// Done gives the place back.
func (v *valve) Done(server string, _ hbase.Outcome) { <-v.gauge(server).requests }

func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
