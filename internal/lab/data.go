package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// dataset is a pair of tables: `<name>_local` on every node and a Distributed
// `<name>` over them.
type dataset struct {
	database, name string
	columns        string // as in CREATE TABLE
	partitionBy    string
	orderBy        string
	shardingKey    string // of the Distributed table
	// id describes the rows and where they lie; a data set with the same id is
	// not loaded again.
	id string
	// insert fills the local table of a node with the rows of its shard.
	insert func(ctx context.Context, n *Node) error
}

func (d dataset) table(suffix string) string {
	return quoteName(d.database) + "." + quoteName(d.name+suffix)
}

// quoteName quotes an identifier for both server versions.
func quoteName(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(s) + "`"
}

func quoteText(s string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(s) + "'"
}

// load creates the database and the tables on every node and fills them, unless
// they hold the same data already. A load that was interrupted starts over. The
// phases are the cluster's, not the node's: a replica must not get rows before
// the others have their tables, and no node is done before all are.
func (c *Cluster) load(ctx context.Context, d dataset) error {
	there, err := c.loaded(ctx, d)
	if there || err != nil {
		return err
	}
	for _, phase := range []func(context.Context, *Node) error{
		func(ctx context.Context, n *Node) error { return c.create(ctx, n, d) },
		func(ctx context.Context, n *Node) error {
			if c.replicated() && n.Replica > 1 {
				return nil
			}
			return d.insert(ctx, n)
		},
		func(ctx context.Context, n *Node) error { return c.finish(ctx, n, d) },
	} {
		if err := c.each(func(n *Node) error { return phase(ctx, n) }); err != nil {
			return fmt.Errorf("load %s: %w", d.name, err)
		}
	}
	return nil
}

// loaded tells whether every node has the marker of a finished load.
func (c *Cluster) loaded(ctx context.Context, d dataset) (bool, error) {
	there := make([]bool, len(c.Nodes))
	err := c.each(func(n *Node) (err error) {
		there[slices.Index(c.Nodes, n)], err = d.loaded(ctx, n)
		return err
	})
	return err == nil && !slices.Contains(there, false), err
}

// loaded looks for the marker that a finished load leaves.
func (d dataset) loaded(ctx context.Context, n *Node) (bool, error) {
	out, err := n.Query(ctx, fmt.Sprintf("SELECT count() FROM system.tables WHERE database = %s AND name = %s",
		quoteText(d.database), quoteText(d.name+"_loaded")))
	if err != nil || strings.TrimSpace(out) == "0" {
		return false, err
	}
	out, err = n.Query(ctx, "SELECT count() FROM "+d.table("_loaded")+" WHERE id = "+quoteText(d.id))
	return strings.TrimSpace(out) == "1", err
}

func (c *Cluster) create(ctx context.Context, n *Node, d dataset) error {
	engine := "MergeTree"
	if c.replicated() {
		engine = fmt.Sprintf("ReplicatedMergeTree(%s, '{replica}')",
			quoteText("/clickhouse/tables/"+d.database+"/{shard}/"+d.name))
	}
	for _, sql := range []string{
		"CREATE DATABASE IF NOT EXISTS " + quoteName(d.database),
		"DROP TABLE IF EXISTS " + d.table(""),
		"DROP TABLE IF EXISTS " + d.table("_local"),
		"DROP TABLE IF EXISTS " + d.table("_loaded"),
		fmt.Sprintf("CREATE TABLE %s (%s) ENGINE = %s PARTITION BY %s ORDER BY (%s)",
			d.table("_local"), d.columns, engine, d.partitionBy, d.orderBy),
		fmt.Sprintf("CREATE TABLE %s (%s) ENGINE = Distributed(%s, %s, %s, %s)",
			d.table(""), d.columns, ClusterName, quoteName(d.database), quoteName(d.name+"_local"), d.shardingKey),
	} {
		if err := n.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for the replica to have all rows and leaves the marker.
func (c *Cluster) finish(ctx context.Context, n *Node, d dataset) error {
	if c.replicated() {
		if err := n.Exec(ctx, "SYSTEM SYNC REPLICA "+d.table("_local")); err != nil {
			return err
		}
	}
	if err := n.Exec(ctx, "CREATE TABLE "+d.table("_loaded")+" (id String) ENGINE = TinyLog"); err != nil {
		return err
	}
	return n.Exec(ctx, "INSERT INTO "+d.table("_loaded")+" VALUES ("+quoteText(d.id)+")")
}

// replicated tells whether the replicas copy each other's rows; otherwise each
// is loaded by itself.
func (c *Cluster) replicated() bool { return c.Old && c.ZooKeeper != "" }
