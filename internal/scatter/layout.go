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
	// rows and parts are those of the local tables of all shards.
	rows, parts uint64
}

// A tableInfo is what a node says of a table.
type tableInfo struct{ engine, full, sortingKey, partitionKey string }

func (p *Planner) tableInfo(ctx context.Context, n *clickhouse.Node, name string) (tableInfo, error) {
	var t tableInfo
	found := false
	sql := "SELECT engine, engine_full, sorting_key, partition_key FROM system.tables WHERE " + isTable(name, "name")
	err := n.Rows(ctx, clickhouse.Query{ID: p.id("table"), SQL: sql}, func(scan func(...any) error) error {
		found = true
		return scan(&t.engine, &t.full, &t.sortingKey, &t.partitionKey)
	})
	if err == nil && !found {
		err = fmt.Errorf("%s cannot be seen in system.tables of %s", name, n.Addr)
	}
	return t, err
}

// isTable is a condition on system tables.
func isTable(name, column string) string {
	database, table, ok := strings.Cut(name, ".")
	database = clickhouse.Quote(database)
	if !ok {
		database, table = "currentDatabase()", name
	}
	return "database = " + database + " AND " + column + " = " + clickhouse.Quote(table)
}

// layout learns how the source table lies on the nodes. That it cannot be
// learned is no error: slices by hash need none of it.
func (p *Planner) layout(ctx context.Context) layout {
	l := layout{shards: len(p.shards())}
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
	for _, expr := range splitList(t.sortingKey) {
		l.sortingKey = append(l.sortingKey, withoutParentheses(expr))
	}
	l.partitionKey = t.partitionKey
	if err := p.countParts(ctx, l); err != nil {
		return err.Error()
	}
	return ""
}

// behind reads the definition of a Distributed table.
func (p *Planner) behind(ctx context.Context, full string, l *layout) (why string) {
	inside, ok := strings.CutPrefix(full, "Distributed(")
	if !ok {
		return "its definition cannot be read"
	}
	if i := strings.LastIndexByte(inside, ')'); i >= 0 {
		inside = inside[:i]
	}
	args := splitList(inside)
	if len(args) < 3 {
		return "its definition cannot be read"
	}
	for i := range 3 {
		args[i] = unquoteName(args[i])
	}
	if macro, ok := strings.CutPrefix(args[0], "{"); ok {
		sql := "SELECT getMacro(" + clickhouse.Quote(strings.TrimSuffix(macro, "}")) + ")"
		if err := p.Nodes[0].Row(ctx, clickhouse.Query{ID: p.id("macro"), SQL: sql}, &args[0]); err != nil {
			return "its cluster is a macro: " + err.Error()
		}
	}
	if args[0] != p.Job.Source.Cluster {
		return fmt.Sprintf("it is over the cluster %q, not over source.cluster", args[0])
	}
	if !plainName(args[1]) || !plainName(args[2]) {
		return fmt.Sprintf("the table %s.%s behind it has a name that needs quoting", args[1], args[2])
	}
	l.local = args[1] + "." + args[2]
	if len(args) > 3 {
		l.shardingKey = args[3]
	}
	return ""
}

// countParts sums up the active parts of all shards.
func (p *Planner) countParts(ctx context.Context, l *layout) error {
	sql := "SELECT toUInt64(sum(rows)), count() FROM system.parts WHERE active AND " + isTable(l.local, "table")
	rows, parts := make([]uint64, l.shards), make([]uint64, l.shards)
	err := p.eachShard(ctx, func(ctx context.Context, shard int, n *clickhouse.Node) error {
		return n.Row(ctx, clickhouse.Query{ID: p.id("parts"), SQL: sql}, &rows[shard], &parts[shard])
	})
	for i := range rows {
		l.rows += rows[i]
		l.parts += parts[i]
	}
	return err
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

// splitList splits at the commas outside of brackets and quotes.
func splitList(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '\'', '`', '"':
			i = endOfQuote(s, i)
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[min(from, len(s)):]); last != "" {
		out = append(out, last)
	}
	return out
}

// withoutParentheses takes off those around the whole of an expression.
func withoutParentheses(expr string) string {
	inside, ok := strings.CutPrefix(expr, "(")
	if ok && strings.HasSuffix(inside, ")") && plainName(unquoteName(inside[:len(inside)-1])) {
		return inside[:len(inside)-1]
	}
	return expr
}

// endOfQuote is the index of the quote that ends the text beginning at i.
func endOfQuote(s string, i int) int {
	quote := s[i]
	for i++; i < len(s) && s[i] != quote; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i
}

func unquoteName(s string) string {
	if len(s) >= 2 && strings.IndexByte("'`\"", s[0]) >= 0 && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func plainName(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) || i == 0 && '0' <= s[0] && s[0] <= '9' {
			return false
		}
	}
	return s != ""
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// columnsOf gives the columns that an expression reads; ok is false where it
// calls what is not a function of them.
func columnsOf(expr string) (columns []string, ok bool) {
	for i := 0; i < len(expr); {
		c := expr[i]
		switch {
		case c == '\'':
			i = endOfQuote(expr, i) + 1
		case c == '`' || c == '"':
			end := endOfQuote(expr, i)
			columns = append(columns, expr[i+1:min(end, len(expr))])
			i = end + 1
		case isWordByte(c):
			start := i
			for i < len(expr) && isWordByte(expr[i]) {
				i++
			}
			word := expr[start:i]
			called := strings.HasPrefix(strings.TrimLeft(expr[i:], " "), "(")
			switch {
			case called && !isPure(word):
				return nil, false
			case !called && !('0' <= c && c <= '9'):
				columns = append(columns, word)
			}
		default:
			i++
		}
	}
	slices.Sort(columns)
	return slices.Compact(columns), len(columns) > 0
}

// isPure says that a function gives the same for the same arguments at any
// time on any node.
func isPure(function string) bool {
	lower := strings.ToLower(function)
	for _, prefix := range []string{"rand", "generateuuid", "now", "today", "yesterday", "hostname", "rownumber", "block", "dict", "joinget", "fuzz", "uptime"} {
		if strings.HasPrefix(lower, prefix) {
			return false
		}
	}
	return true
}
