// Package clickhouse asks a ClickHouse cluster: it finds the nodes, proves that
// the job's limits hold on each of them, and runs bounded queries whose results
// it decodes. Every error leaves it classified (package failure).
package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A Client is a set of connected nodes.
type Client struct {
	nodes []*Node
	log   *slog.Logger
}

// Open finds the cluster's nodes through any of the source's addresses,
// connects to all of them, and proves on each that the limits hold. conns is
// the number of connections to a node. A node that does not answer is left out
// with a warning as long as another replica of its shard does. Every error is
// a preflight error.
func Open(ctx context.Context, src job.Source, limits job.Limits, conns int, log *slog.Logger) (*Client, error) {
	seed, err := firstAnswer(ctx, src, limits, log)
	if err != nil {
		return nil, preflight(err)
	}
	var hosts []host
	err = seed.bind(ctx)
	if err == nil {
		hosts, err = seed.topology(ctx, src.Cluster)
	}
	_ = seed.Close()
	if err != nil {
		return nil, preflight(err)
	}
	c := &Client{log: log}
	if err := c.connect(ctx, hosts, src, limits, conns); err != nil {
		c.Close()
		return nil, preflight(err)
	}
	return c, nil
}

// preflight gives an error the preflight class, unless it is an interruption.
func preflight(err error) error {
	if KindOf(err) == KindCancelled {
		return err
	}
	return failure.New(failure.Preflight, err, "")
}

// firstAnswer asks all addresses at once and takes the first node that lets us in.
func firstAnswer(ctx context.Context, src job.Source, limits job.Limits, log *slog.Logger) (*Node, error) {
	type answer struct {
		node *Node
		err  error
	}
	answers := make(chan answer, len(src.Addresses))
	for _, addr := range src.Addresses {
		go func() {
			n, err := dial(addr, src, limits, 1, log)
			if err == nil {
				err = n.hello(ctx)
			}
			answers <- answer{n, err}
		}()
	}
	var errs []error
	var first *Node
	for range src.Addresses {
		a := <-answers
		switch {
		case a.err != nil:
			errs = append(errs, a.err)
			if a.node != nil {
				_ = a.node.Close()
			}
		case first == nil:
			first = a.node
		default:
			_ = a.node.Close()
		}
	}
	if first != nil {
		return first, nil
	}
	return nil, unreachable(src, errs)
}

// unreachable puts the reasons of several addresses into one error. A refused
// login, or a certificate that is not trusted, says more than a refused
// connection.
func unreachable(src job.Source, errs []error) error {
	for _, err := range errs {
		if failure.Remedy(err) != "" {
			return err
		}
	}
	kind := "the native protocol, usually 9000, or 9440 with source.tls"
	if src.Protocol == job.HTTP {
		kind = "HTTP, usually 8123, or 8443 with source.tls"
	}
	return failure.New(failure.Preflight, fmt.Errorf("%w: %w", errNoNode, errors.Join(errs...)),
		"check source.addresses (host:port of "+kind+") and that the server runs")
}

func (c *Client) connect(ctx context.Context, hosts []host, src job.Source, limits job.Limits, conns int) error {
	nodes := make([]*Node, len(hosts))
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() {
			nodes[i], errs[i] = openNode(ctx, h, src, limits, conns, c.log)
		})
	}
	wg.Wait()
	missing := map[uint32]error{}
	for i, h := range hosts {
		if errs[i] != nil {
			missing[h.shard] = errs[i]
			continue
		}
		c.nodes = append(c.nodes, nodes[i])
	}
	return c.tolerate(hosts, errs, missing)
}

func openNode(ctx context.Context, h host, src job.Source, limits job.Limits, conns int, log *slog.Logger) (*Node, error) {
	addr, err := h.dialAddr(src)
	if err != nil {
		return nil, err
	}
	n, err := dial(addr, src, limits, conns, log)
	if err != nil {
		return nil, err
	}
	n.Shard, n.Replica = h.shard, h.replica
	err = n.hello(ctx)
	if err == nil {
		err = n.bind(ctx)
	}
	if err != nil {
		_ = n.Close()
		return nil, err
	}
	return n, nil
}

// tolerate decides about nodes that could not be opened: one that is merely
// away is left out if its shard has another replica; whatever the server
// itself said (a refused login, limits that do not hold) is an error.
func (c *Client) tolerate(hosts []host, errs []error, missing map[uint32]error) error {
	slices.SortFunc(c.nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Replica, b.Replica))
	})
	for _, err := range errs {
		if err != nil && KindOf(err) != KindElsewhere {
			return err
		}
	}
	for _, n := range c.nodes {
		delete(missing, n.Shard)
	}
	for shard, err := range missing {
		return failure.New(failure.Preflight,
			fmt.Errorf("%w %d can be reached: %w", errNoReplica, shard, err),
			"start the node, or give the address by which this machine reaches it in source.node_map")
	}
	for i, err := range errs {
		if err != nil {
			c.log.Warn("ClickHouse node left out", "shard", hosts[i].shard, "replica", hosts[i].replica, "error", err)
		}
	}
	return nil
}

// Engines gives the definition of a table's engine on each node, in the nodes'
// order; empty where the table cannot be seen.
func (c *Client) Engines(ctx context.Context, table string) ([]string, error) {
	return c.each(ctx, "SELECT if(engine_full = '', engine, engine_full) FROM system.tables WHERE "+InTable(table, "name"))
}

// Columns gives the columns of a table on each node, in the nodes' order, one a
// line: names, types, and the expressions of those that are computed when they are read.
func (c *Client) Columns(ctx context.Context, table string) ([]string, error) {
	return c.each(ctx, `SELECT arrayStringConcat(arraySort(groupArray(concat(name, ' ', type, if(default_kind = 'ALIAS', concat(' ALIAS ', default_expression), '')))), '\n')
		FROM system.columns WHERE `+InTable(table, "table"))
}

// InTable is a condition on a system table whose given column has tables' names;
// table is database.table, or one of the current database.
func InTable(table, column string) string {
	database, name, ok := strings.Cut(table, ".")
	database = Quote(database)
	if !ok {
		database, name = "currentDatabase()", table
	}
	return "database = " + database + " AND " + column + " = " + Quote(name)
}

// each asks all nodes for one text, empty where there is no row.
func (c *Client) each(ctx context.Context, sql string) ([]string, error) {
	texts := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		err := n.Rows(ctx, Query{SQL: sql}, func(scan func(...any) error) error { return scan(&texts[i]) })
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Shards is the number of shards.
func (c *Client) Shards() int { return Shards(c.nodes) }

// Shards is the number of shards that nodes belong to.
func Shards(nodes []*Node) int {
	shards := map[uint32]bool{}
	for _, n := range nodes {
		shards[n.Shard] = true
	}
	return len(shards)
}

// Nodes gives the connected nodes by shard and replica. The slice is shared.
func (c *Client) Nodes() []*Node { return c.nodes }

// Label puts the names of the job and the run into the log_comment of every
// query, as JSON beside the rest of the query's id; servers before 21 have none.
func (c *Client) Label(jobName, run string) {
	for _, n := range c.nodes {
		n.job, n.run = jobName, run
	}
}

// Close closes all connections.
func (c *Client) Close() {
	for _, n := range c.nodes {
		_ = n.Close()
	}
}
