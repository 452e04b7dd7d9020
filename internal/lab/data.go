package lab

import (
	"context"
	"fmt"
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
// they hold the same data already. A load that was interrupted starts over.
func (c *Cluster) load(ctx context.Context, d dataset) error {
	if err := c.ExecAll(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteName(d.database)); err != nil {
		return fmt.Errorf("load %s: %w", d.name, err)
	}
	err := c.each(func(n *Node) error {
		there, err := d.loaded(ctx, n)
		if err != nil || there {
			return err
		}
		return c.create(ctx, n, d)
	})
	if err == nil { // not before every replica has its table: replication would have nowhere to go
		err = c.each(func(n *Node) error { return c.fill(ctx, n, d) })
	}
	if err != nil {
		return fmt.Errorf("load %s: %w", d.name, err)
	}
	return nil
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

// fill inserts the rows of the node's shard and then the marker.
func (c *Cluster) fill(ctx context.Context, n *Node, d dataset) error {
	if there, err := d.loaded(ctx, n); err != nil || there {
		return err
	}
	if !c.replicated() || n.Replica == 1 {
		if err := d.insert(ctx, n); err != nil {
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
