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
	// killTimeout bounds the killing of a query and the wait for its end.
	killTimeout = 6 * time.Second
	// killPoll is the time between two looks at the processes.
	killPoll = 50 * time.Millisecond
)

var errStillThere = errors.New("killed, but still in system.processes")

// leave is called with the outcome of a query. Where the query was given up, or
// the connection to it is lost, it is killed on the server too: an old server
// runs an aggregation to its end after the client has gone.
func (n *Node) leave(ctx context.Context, id string, err error) error {
	if err == nil {
		return nil
	}
	if id != "" && (ctx.Err() != nil || lost(err)) {
		n.Kill(context.WithoutCancel(ctx), id)
	}
	return timerCause(ctx, err)
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
	if err := n.kill(ctx, "query_id = "+Quote(id)+" OR initial_query_id = "+Quote(id)); err != nil {
		n.log.Warn("could not kill the query", "node", n.Addr, "query_id", id, "error", err)
	}
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
	kill := "KILL QUERY WHERE " + which + " ASYNC"
	count := "SELECT count() FROM system.processes WHERE " + which
	killed, left := false, uint64(1)
	for {
		var err error
		if !killed {
			err = n.conn.Exec(n.options(ctx, nil, Query{}, &proof{}), kill)
			killed = err == nil
		}
		if killed {
			err = n.one(ctx, n.settings, count, &left)
		}
		switch err = n.classify(ctx, err); {
		case err == nil && left == 0:
			return nil
		case ctx.Err() != nil && killed:
			return fmt.Errorf("%w after %v", errStillThere, killTimeout)
		case err != nil && KindOf(err) != KindLater:
			return timerCause(ctx, err)
		}
		select {
		case <-ctx.Done():
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
