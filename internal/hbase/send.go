package hbase

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A Valve decides when a request may go out and is told what became of it. It
// is called by many goroutines.
type Valve interface {
	// Open waits until a request of so many rows may go to a server, or fails. The
	// request is given up at the time that it gives, if that is not zero.
	Open(ctx context.Context, server string, rows int) (until time.Time, err error)
	// Done follows each Open that did not fail.
	Done(server string, o Outcome)
}

// An Outcome is what became of a request.
type Outcome struct {
	// Acked is the number of rows that the server has acknowledged, of Rows.
	Acked, Rows int
	Took        time.Duration
	// Pushback says that the server has more to do than it can.
	Pushback bool
}

// A Sender sends batches of puts to a table, each to the servers of its
// regions. It is safe for concurrent use.
type Sender struct {
	client *Client
	table  string
	router *router
	SendOptions
}

// SendOptions say how puts are sent.
type SendOptions struct {
	Durability Durability
	// Timeout is how long a request may take to be answered.
	Timeout time.Duration
	// Valve, if set, lets requests out.
	Valve Valve
	// Snappy compresses cells on their way; a region server that has no such codec
	// closes the connection.
	Snappy bool
}

// NewSender makes a sender to a table.
func (c *Client) NewSender(table string, o SendOptions) *Sender {
	return &Sender{client: c, table: table, router: newRouter(c, table), SendOptions: o}
}

// Home gives the server that a key's row goes to, as far as is known from the
// sends before; the same text means the same request. It never waits.
func (s *Sender) Home(key []byte) string {
	now := s.router.known.Load()
	if now == nil {
		return ""
	}
	return now.regions[now.find(key)].Server
}

// Send sends the rows that are not acknowledged, once: one request a server, all
// at once. What the servers acknowledged is not pending any more. The error
// is nil if nothing is, and else classified, a permanent one first.
func (s *Sender) Send(ctx context.Context, p *Puts) error {
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	now, err := s.router.get(limited, nil)
	cancel()
	if err != nil {
		return s.client.classify(ctx, "write to "+s.table, err)
	}
	parts, homeless := now.share(p)
	r := &round{sender: s, ctx: ctx, puts: p}
	if homeless != nil {
		r.fail(fmt.Errorf("the region from key %q on has no server", homeless.Start), stale)
	}
	if cap(p.acked) < len(p.pending) {
		p.acked = make([]bool, cap(p.pending))
	}
	p.acked = p.acked[:len(p.pending)]
	clear(p.acked)
	var wg sync.WaitGroup
	for i := range parts {
		if i < len(parts)-1 {
			wg.Go(func() { r.send(&parts[i]) })
		} else {
			r.send(&parts[i]) // most often the only one
		}
	}
	wg.Wait()
	p.settle()
	if r.stale && ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		if _, err := s.router.get(limited, now); err != nil {
			r.fail(err, retry)
		}
	}
	switch {
	case p.Pending() == 0:
		return nil
	case r.worst == nil:
		r.fail(errUnanswered, retry)
	}
	return r.worst
}

// round is one attempt of a batch.
type round struct {
	sender *Sender
	ctx    context.Context
	puts   *Puts

	mu    sync.Mutex
	worst error
	stale bool // the routes are
}

// fail keeps the error that says most: a permanent one, or the first.
func (r *round) fail(err error, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = r.stale || v == stale
	if r.worst == nil || failure.IsTransient(r.worst) && v == permanentFailure {
		r.worst = r.sender.client.classifyWrite(r.ctx, r.sender.table, err, v)
	}
}

// send sends one server's part and marks what was acknowledged.
func (r *round) send(t *part) {
	s := r.sender
	t.encode(r.puts, s.Durability)
	var until time.Time
	if s.Valve != nil {
		var err error
		if until, err = s.Valve.Open(r.ctx, t.server, t.rows); err != nil {
			r.fail(err, retry)
			return
		}
	}
	begin := time.Now()
	end := begin.Add(s.Timeout)
	if !until.IsZero() && until.Before(end) {
		end = until
	}
	limited, cancel := context.WithDeadline(r.ctx, end)
	defer cancel()
	answer, err := s.client.servers.get(t.server, s.Snappy).call(limited, t)
	o := Outcome{Rows: t.rows, Took: time.Since(begin)}
	failed := func(_, _ int, err error) {
		v := judge(err)
		o.Pushback = o.Pushback || v == pushback
		r.fail(err, v)
	}
	if err == nil {
		index := t.indexes()
		err = t.decode(answer, func(row int) { r.puts.acked[index(row)] = true; o.Acked++ }, failed)
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && r.ctx.Err() == nil {
			err = failure.New(failure.Transient, fmt.Errorf("HBase %s, write to %s: region server %s gave no answer within %v", s.client.Name(), s.table, t.server, end.Sub(begin).Round(time.Millisecond)),
				"check the master and the region servers; then run the same command again")
		}
		failed(0, t.rows, err)
	}
	if s.Valve != nil {
		s.Valve.Done(t.server, o)
	}
}

// indexes maps the index of a row in the request, which must not fall from call
// to call by a whole region, to that in the pending rows.
func (r *part) indexes() func(row int) int {
	region, base := 0, 0
	return func(row int) int {
		for row-base >= r.spans[region].to-r.spans[region].from {
			base += r.spans[region].to - r.spans[region].from
			region++
		}
		return r.spans[region].from + row - base
	}
}
