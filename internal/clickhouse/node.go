package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

const (
	// dialTimeout bounds connecting and logging in.
	dialTimeout = 4 * time.Second
	// metaTimeout bounds a query on system tables.
	metaTimeout = 8 * time.Second
	// drain is what a query may take beyond its own limit: the server checks
	// the limit between blocks, and the last blocks have to travel.
	drain = 60 * time.Second
	// killTimeout bounds the killing of one query.
	killTimeout = 3 * time.Second
)

// A Node is one server of the cluster, with a connection pool of its own, so
// that the mover and not the driver chooses the initiator of a query.
type Node struct {
	// Addr is the host:port that is dialled.
	Addr string
	// Shard and Replica are the numbers in system.clusters.
	Shard, Replica uint32
	// Version is the server's version, for example 26.9.2.1.
	Version string

	conn     driver.Conn
	log      *slog.Logger
	limits   job.Limits
	settings []setting
	threads  int // of a query, as the server would take
}

func dial(addr string, src job.Source, limits job.Limits, conns int, log *slog.Logger) (*Node, error) {
	conn, err := ch.Open(&ch.Options{
		Addr: []string{addr},
		Auth: ch.Auth{Username: src.Username, Password: string(src.Password)},
		// The driver's ReadTimeout runs from the start of a query to its end.
		ReadTimeout:     limits.MaxExecutionTime + 2*drain,
		DialTimeout:     dialTimeout,
		MaxOpenConns:    conns,
		MaxIdleConns:    conns,
		Compression:     &ch.Compression{Method: ch.CompressionLZ4},
		BlockBufferSize: 1,
		ClientInfo: ch.ClientInfo{Products: []struct{ Name, Version string }{
			{Name: "ck2hbase", Version: ""},
		}},
		Logger: slog.New(slog.DiscardHandler), // errors are returned, once
		DialContext: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext(ctx, "tcp", addr)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", addr, err)
	}
	return &Node{Addr: addr, conn: conn, log: log, limits: limits}, nil
}

// hello connects and learns the version.
func (n *Node) hello(ctx context.Context) error {
	ctx, stop := untimed(ctx, metaTimeout)
	defer stop()
	err := n.conn.Ping(ctx)
	if err == nil {
		err = n.readVersion(ctx)
	}
	return classify(n.Addr, timerCause(ctx, err))
}

func (n *Node) readVersion(ctx context.Context) error {
	v, err := n.conn.ServerVersion()
	if err != nil {
		return err
	}
	n.settings = basics(v.Version.Major, v.Version.Minor)
	return n.conn.QueryRow(ch.Context(ctx, ch.WithSettings(packet(n.settings))), "SELECT version()"+clause(n.settings)).Scan(&n.Version)
}

// bind learns which settings the server has, and proves that the job's limits
// hold for this user.
func (n *Node) bind(ctx context.Context) error {
	ctx, stop := untimed(ctx, metaTimeout)
	defer stop()
	known, err := n.readSettings(ctx, n.settings, nil)
	if err != nil {
		return err
	}
	n.settings = knownOnly(bounds(n.limits), known)
	n.threads = threadsOf(known["max_threads"])
	return n.proveBounds(ctx)
}

// Rows runs a small query and calls scan for each row. The job's limits apply.
func (n *Node) Rows(ctx context.Context, q Query, scan func(func(dest ...any) error) error) error {
	return n.query(ctx, n.settingsOf(q), q, scan)
}

func (n *Node) query(ctx context.Context, settings []setting, q Query, scan func(func(dest ...any) error) error) error {
	ctx, stop := untimed(ctx, n.limits.MaxExecutionTime+drain)
	defer stop()
	var profile atomic.Pointer[ch.ProfileInfo]
	rows, err := n.start(ctx, settings, q, func(p *ch.ProfileInfo) { profile.Store(p) })
	if err != nil {
		return err
	}
	defer rows.Close()
	var got uint64
	for rows.Next() {
		got++
		if err := scan(rows.Scan); err != nil {
			stop() // closing drains the stream, unless it was cancelled
			return classify(n.Addr, err)
		}
	}
	if err := rows.Err(); err != nil {
		return classify(n.Addr, n.leave(ctx, q.ID, err))
	}
	return n.proven(profile.Load(), got)
}

// start sends a query with its settings.
func (n *Node) start(ctx context.Context, settings []setting, q Query, profile func(*ch.ProfileInfo)) (driver.Rows, error) {
	options := []ch.QueryOption{ch.WithSettings(packet(settings)), ch.WithProfileInfo(profile)}
	if q.ID != "" {
		options = append(options, ch.WithQueryID(q.ID))
	}
	if q.Progress != nil {
		options = append(options, ch.WithProgress(func(p *ch.Progress) { q.Progress(p.Rows, p.Bytes) }))
	}
	rows, err := n.conn.Query(ch.Context(ctx, options...), q.SQL+clause(settings))
	return rows, classify(n.Addr, n.leave(ctx, q.ID, err))
}

// Row runs a query whose result is one row and scans it. Any other number of
// rows is an error that may pass: an old server can read an empty answer off a
// connection to another node that an earlier failure has left in disorder.
func (n *Node) Row(ctx context.Context, q Query, dest ...any) error {
	got := 0
	err := n.Rows(ctx, q, func(scan func(...any) error) error {
		got++
		return scan(dest...)
	})
	if err == nil && got != 1 {
		err = failure.Errorf(failure.Transient, "ClickHouse %s: %d rows came where there is one", n.Addr, got)
	}
	return err
}

// leave is called with the outcome of a query. Where the query was given up,
// it is killed on the server too: an old server runs an aggregation to its end
// after the client has gone.
func (n *Node) leave(ctx context.Context, id string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && id != "" {
		n.Kill(context.WithoutCancel(ctx), id)
	}
	return timerCause(ctx, err)
}

// Kill ends the query with the given id on this node, if it still runs. It
// does its best within a few seconds; that it failed is only logged, since the
// query's own limits end it in any case.
func (n *Node) Kill(ctx context.Context, id string) {
	ctx, stop := untimed(ctx, killTimeout)
	defer stop()
	sql := "KILL QUERY WHERE query_id = " + Quote(id) + " ASYNC"
	if err := n.conn.Exec(ctx, sql); err != nil {
		n.log.Warn("could not kill the query", "node", n.Addr, "query_id", id, "error", err)
	}
}

// KillLeftovers ends the queries whose ids begin with the prefix, which has no
// wildcards: those that a dead process has left behind. It returns how many there were.
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
	return found, classify(n.Addr, timerCause(ctx, n.conn.Exec(ctx, "KILL QUERY WHERE "+like+" ASYNC")))
}

// Close closes the connections.
func (n *Node) Close() error { return n.conn.Close() }

// errTimer is the cause of a context that [untimed] ended.
var errTimer = errors.New("no answer in time")

// untimed gives a context that ends with ctx or after d, and that shows no
// deadline: from a deadline the driver would make a max_execution_time of its
// own and override the job's.
func untimed(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	timer := time.AfterFunc(d, func() { cancel(errTimer) })
	return out, func() {
		unlink()
		timer.Stop()
		cancel(context.Canceled)
	}
}

// timerCause tells a time-out of ours from a cancellation by the caller: the
// driver reports both as "context canceled".
func timerCause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimer) {
		return fmt.Errorf("%w: %w", errTimer, context.DeadlineExceeded)
	}
	return err
}
