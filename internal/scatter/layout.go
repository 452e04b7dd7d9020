package scatter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
)

// A layout says how the source table lies on the nodes, as far as strategies
// can use it.
type layout struct {
	// local is the table that holds the rows on each node, database.table; empty,
	// with the reason in why, where it cannot be read by itself.
	local, why string
	// shards is the number of shards.
	shards int
	// shardingKey is that of the Distributed table; empty where there is none.
	shardingKey string
	// sortingKey and partitionKey are those of the local table.
	sortingKey   []string
	partitionKey string
}

// A tableInfo is what a node says of a table.
type tableInfo struct{ engine, full, sortingKey, partitionKey string }

func (p *Planner) tableInfo(ctx context.Context, n *clickhouse.Node, name string) (tableInfo, error) {
	var t tableInfo
	found := false
	sql := "SELECT engine, engine_full, sorting_key, partition_key FROM system.tables WHERE " + clickhouse.InTable(name, "name")
	err := n.Rows(ctx, clickhouse.Query{ID: p.id("table"), SQL: sql}, func(scan func(...any) error) error {
		found = true
		return scan(&t.engine, &t.full, &t.sortingKey, &t.partitionKey)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s cannot be seen in system.tables of %s", name, n.Addr)
	}
	return t, err
}

// layout learns how the source table lies on the nodes. That it cannot be
// learned is no error: slices by hash need none of it.
func (p *Planner) layout(ctx context.Context) layout {
	l := layout{shards: clickhouse.Shards(p.Nodes)}
	l.why = p.readLayout(ctx, &l)
	if l.why != "" {
		l.local = ""
	}
	return l
}

func (p *Planner) readLayout(ctx context.Context, l *layout) (why string) {
	t, err := p.tableInfo(ctx, p.Nodes[0], p.Job.Source.Table)
	if err != nil {
		return err.Error()
	}
	l.local = p.Job.Source.Table
	if t.engine == "Distributed" {
		if why := p.behind(ctx, t.full, l); why != "" {
			return why
		}
		if t, err = p.tableInfo(ctx, p.Nodes[0], l.local); err != nil {
			return err.Error()
		}
	}
	if !strings.HasSuffix(t.engine, "MergeTree") {
		return fmt.Sprintf("%s has the engine %s, of which nothing is known", l.local, t.engine)
	}
	for _, expr := range clickhouse.SplitList(t.sortingKey) {
		l.sortingKey = append(l.sortingKey, withoutParentheses(expr))
	}
	l.partitionKey = t.partitionKey
	return ""
}

// behind reads the definition of a Distributed table.
func (p *Planner) behind(ctx context.Context, full string, l *layout) (why string) {
	d, ok, err := p.Nodes[0].Distributed(ctx, full)
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return "its definition cannot be read"
	case d.Cluster != p.Job.Source.Cluster:
		return fmt.Sprintf("it is over the cluster %q, not over source.cluster", d.Cluster)
	case strings.Contains(d.Database, "."):
		return fmt.Sprintf("the name of the database %q has a dot", d.Database)
	}
	l.local, l.shardingKey = d.Database+"."+d.Table, d.ShardingKey
	return ""
}

// shards gives the nodes by shard, in the order of the shards.
func (p *Planner) shards() [][]*clickhouse.Node {
	byShard := map[uint32][]*clickhouse.Node{}
	var order []uint32
	for _, n := range p.Nodes {
		if byShard[n.Shard] == nil {
			order = append(order, n.Shard)
		}
		byShard[n.Shard] = append(byShard[n.Shard], n)
	}
	slices.Sort(order)
	out := make([][]*clickhouse.Node, len(order))
	for i, s := range order {
		out[i] = byShard[s]
	}
	return out
}

// withoutParentheses takes off those around the whole of a column's name.
func withoutParentheses(expr string) string {
	inside, ok := strings.CutPrefix(expr, "(")
	if inside, closed := strings.CutSuffix(inside, ")"); ok && closed && !strings.ContainsAny(inside, "(),") {
		return inside
	}
	return expr
}
