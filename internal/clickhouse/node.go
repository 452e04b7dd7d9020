package clickhouse

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

const (
	// metaTimeout bounds a query on system tables.
	metaTimeout = 8 * time.Second
	// drain is what a query may take beyond its own limit: the server checks
	// the limit between blocks, and the last blocks have to travel.
	drain = 60 * time.Second
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

	conn      driver.Conn
	lives     func() bool // asks a silent server, native protocol only
	log       *slog.Logger
	limits    job.Limits
	http      bool
	zone      *time.Location // of the server's messages
	modern    bool           // the server has what came with 20.1
	settings  []setting      // of every query
	known     map[string]knownSetting
	threads   int    // of a query, as the server would take
	job, run  string // for log_comment
	commented bool   // the user may set log_comment
}

// hello connects, learns the version, and which settings keep the first
// answers whole.
func (n *Node) hello(ctx context.Context) error {
	ctx, stop := untimed(ctx, metaTimeout)
	defer stop()
	err := n.conn.Ping(ctx)
	if err == nil {
		err = n.readVersion(ctx)
	}
	return n.classify(ctx, tooOld(timerCause(ctx, err)))
}

func (n *Node) readVersion(ctx context.Context) error {
	v, err := n.conn.ServerVersion()
	if err != nil {
		return err
	}
	n.zone = cmp.Or(v.Timezone, time.UTC)
	n.modern = v.Version.Major >= 20
	// A user that is readonly=1 can send no settings at all; but without some, a
	// profile may have an offset that leaves no row, or a cache that takes none.
	const question = "SELECT version(), value FROM system.settings WHERE name = 'readonly'"
	var readonly string
	err = n.one(ctx, nil, question, &n.Version, &readonly)
	if readonly == "1" {
		return err
	}
	n.settings = basics(v.Version.Major, v.Version.Minor)
	if err != nil {
		err = n.one(ctx, n.settings, question, &n.Version, &readonly)
	}
	return err
}

// one scans the one row of a query on system tables.
func (n *Node) one(ctx context.Context, settings []setting, sql string, dest ...any) error {
	p := &proof{}
	err := n.conn.QueryRow(n.options(ctx, settings, Query{}, p), sql+clause(settings)).Scan(dest...)
	if err != nil || !n.http {
		return err
	}
	// A server that does not count a result's rows cannot prove its end.
	if rows := p.rows.Load(); rows == nil || *rows != 1 {
		return errNoSummary
	}
	return nil
}

// Rows runs a small query and calls scan for each row. The job's limits apply.
func (n *Node) Rows(ctx context.Context, q Query, scan func(func(dest ...any) error) error) error {
	ctx, stop := untimed(ctx, n.limits.MaxExecutionTime+drain)
	defer stop()
	p := &proof{}
	rows, err := n.start(ctx, n.settingsOf(q), q, p)
	if err != nil {
		return err
	}
	defer rows.Close()
	var got uint64
	for rows.Next() {
		got++
		if err := scan(rows.Scan); err != nil {
			stop() // closing drains the stream, unless it was cancelled
			return n.refuse(err)
		}
	}
	if err := cmp.Or(rows.Err(), ctx.Err()); err != nil {
		return n.classify(ctx, n.leave(ctx, q.ID, err))
	}
	return n.proven(p, got)
}

// start sends a query with its settings.
func (n *Node) start(ctx context.Context, settings []setting, q Query, p *proof) (driver.Rows, error) {
	rows, err := n.conn.Query(n.options(ctx, settings, q, p), q.SQL+clause(settings))
	return rows, n.classify(ctx, n.leave(ctx, q.ID, err))
}

// options is the context that tells the driver about a query.
func (n *Node) options(ctx context.Context, settings []setting, q Query, p *proof) context.Context {
	values := packet(settings)
	if n.commented {
		values["log_comment"] = n.comment(q.ID)
	}
	p.progress = q.Progress
	options := []ch.QueryOption{ch.WithSettings(values), ch.WithProfileInfo(p.profile)}
	if q.ID != "" {
		options = append(options, ch.WithQueryID(q.ID))
	}
	if q.Progress != nil {
		options = append(options, ch.WithProgress(func(p *ch.Progress) { q.Progress(p.Rows, p.Bytes) }))
	}
	return ch.Context(withProof(ctx, p), options...)
}

// comment says in system.query_log what a query was for: what its id says
// besides the run, or that it was about the server itself.
func (n *Node) comment(id string) string {
	purpose := cmp.Or(strings.TrimPrefix(id, "ck2hbase-"+n.run+"-"), "meta")
	text, err := json.Marshal(struct {
		Job   string `json:"job,omitempty"`
		Run   string `json:"run,omitempty"`
		Query string `json:"query"`
	}{n.job, n.run, purpose})
	if err != nil {
		return id // plain texts: it cannot fail
	}
	return string(text)
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

// Close closes the connections.
func (n *Node) Close() error { return n.conn.Close() }
