package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

const (
	// killTimeout bounds the end of a query that is given up.
	killTimeout = 6 * time.Second
	// killPoll is the time between two looks at the processes.
	killPoll = 50 * time.Millisecond
)

var errStillThere = errors.New("killed, but still in system.processes")

// leave is called with the outcome of a query. Where the query was given up, or
// the connection to it is lost, it is ended on the server too: an old server
// runs an aggregation to its end after the client has gone.
func (n *Node) leave(ctx context.Context, id string, err error) error {
	switch {
	case err == nil:
		return nil
	case id == "":
	case ctx.Err() != nil:
		n.afterCancel(context.WithoutCancel(ctx), id)
	case lost(err) && (n.killable() || !errors.Is(err, errSilent)):
		n.Kill(context.WithoutCancel(ctx), id)
	}
	return timerCause(ctx, err)
}

// killable says that KILL QUERY harms nobody. A server before 20.1 holds the
// lock of all its queries while it tells those of a killed one to stop, and
// that has to wait until the other shards' parts say something: where one waits
// for a lock, which it does in silence, no server that takes part answers
// anybody any more.
func (n *Node) killable() bool { return n.modern }

// afterCancel ends a query that the driver has cancelled when its context
// ended. The cancellation alone does it over the native protocol, sooner or
// later; KILL QUERY makes sure.
func (n *Node) afterCancel(ctx context.Context, id string) {
	if n.killable() {
		n.Kill(ctx, id)
		return
	}
	ctx, stop := untimed(ctx, killTimeout)
	defer stop()
	if err := n.gone(ctx, sameQuery(id)); err != nil {
		n.log.Warn("a query that was cancelled has not ended yet", "node", n.Addr, "query_id", id, "error", err)
	}
}

// lost tells whether a query may still run although it has failed here: the
// server did not say that it has ended, and was reached.
func lost(err error) bool {
	if _, ok := errors.AsType[*ch.Exception](err); ok {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	kind, _ := classifyWay(err)
	return kind == KindElsewhere && (!ok || op.Op != "dial")
}

// Kill ends the query with the given id that began on this node, and its parts
// of the same id here, and waits until they are gone. It does its best within
// a few seconds; that it failed is only logged, since the query's own limits
// end it in any case.
func (n *Node) Kill(ctx context.Context, id string) {
	ctx, stop := untimed(ctx, killTimeout)
	defer stop()
	if err := n.kill(ctx, sameQuery(id)); err != nil {
		n.log.Warn("could not kill the query", "node", n.Addr, "query_id", id, "error", err)
	}
}

// sameQuery is the condition of a query and its parts.
func sameQuery(id string) string {
	return "query_id = " + Quote(id) + " OR initial_query_id = " + Quote(id)
}

// KillLeftovers ends the queries whose ids begin with the prefix, which has no
// wildcards: those that a dead process has left behind. It returns how many
// there were. One that does not end within a few seconds is logged.
func (n *Node) KillLeftovers(ctx context.Context, prefix string) (int, error) {
	like := "query_id LIKE " + Quote(prefix+"%")
	found := 0
	err := n.Rows(ctx, Query{SQL: "SELECT query_id FROM system.processes WHERE " + like}, func(scan func(...any) error) error {
		found++
		return scan(new(string))
	})
	if err != nil || found == 0 {
		return 0, err
	}
	ctx, stop := untimed(ctx, killTimeout)
	defer stop()
	err = n.kill(ctx, like)
	if errors.Is(err, errStillThere) {
		n.log.Warn("could not end what an earlier run has left", "node", n.Addr, "query_ids", prefix+"…", "error", err)
		err = nil
	}
	return found, n.classify(ctx, err)
}

// kill ends the queries of a condition and waits for their end, or that of
// ctx. A server that has no room for the order gets it again.
func (n *Node) kill(ctx context.Context, which string) error {
	err := n.insist(ctx, func() (bool, error) {
		err := n.conn.Exec(n.options(ctx, nil, Query{}, &proof{}), "KILL QUERY WHERE "+which+" ASYNC")
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return n.gone(ctx, which)
}

// gone waits until no query of a condition runs, or for the end of ctx.
func (n *Node) gone(ctx context.Context, which string) error {
	left := uint64(1)
	err := n.insist(ctx, func() (bool, error) {
		err := n.one(ctx, n.settings, "SELECT count() FROM system.processes WHERE "+which, &left)
		return err == nil && left == 0, err
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w after %v", errStillThere, killTimeout)
	}
	return err
}

// insist calls do until it is done, fails for good, or ctx ends.
func (n *Node) insist(ctx context.Context, do func() (bool, error)) error {
	for {
		done, err := do()
		err = n.classify(ctx, err)
		switch {
		case done:
			return nil
		case err != nil && KindOf(err) != KindLater:
			return timerCause(ctx, err)
		}
		select {
		case <-ctx.Done():
			return timerCause(ctx, ctx.Err())
		case <-time.After(killPoll):
		}
	}
}

// listens tells whether the node takes connections. One that is shutting down
// kills its queries, and takes none.
func (n *Node) listens(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
