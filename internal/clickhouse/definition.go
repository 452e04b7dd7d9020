package clickhouse

import (
	"context"
	"slices"
	"strings"
)

// A Distributed is the definition of a Distributed table.
type Distributed struct {
	Cluster, Database, Table string
	// ShardingKey is an expression, empty where there is none.
	ShardingKey string
}

// Distributed reads the definition of a Distributed table as system.tables has
// it in engine_full, as in
//
//	Distributed(lab, demo, traffic_local, rand())
//	Distributed('{cluster}', 'demo', 'traffic_local', rand(), 'policy') SETTINGS …
//
// It resolves a macro in place of the cluster. ok is false for another engine, and
// for what cannot be understood.
func (n *Node) Distributed(ctx context.Context, full string) (d Distributed, ok bool, err error) {
	inside, ok := strings.CutPrefix(full, "Distributed(")
	end := closing(inside)
	if !ok || end == len(inside) {
		return d, false, nil
	}
	args := SplitList(inside[:end])
	if len(args) < 3 {
		return d, false, nil
	}
	for i, dst := range []*string{&d.Cluster, &d.Database, &d.Table} {
		*dst = UnquoteName(args[i])
		if *dst == "" || *dst == args[i] && strings.ContainsFunc(args[i], func(r rune) bool { return r > 'z' || !isWordByte(byte(r)) }) {
			return d, false, nil // an expression, or nothing
		}
	}
	if len(args) > 3 {
		d.ShardingKey = args[3]
	}
	if macro, ok := strings.CutPrefix(d.Cluster, "{"); ok {
		sql := "SELECT getMacro(" + Quote(strings.TrimSuffix(macro, "}")) + ")"
		err = n.Row(ctx, Query{SQL: sql}, &d.Cluster)
	}
	return d, true, err
}

// closing is the index of the bracket that closes what was opened before s.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		case '\'', '`', '"':
			i = endOfQuote(s, i)
		}
	}
	return len(s)
}

// SplitList splits an SQL list at the commas outside of brackets and quotes.
func SplitList(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
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

// UnquoteName takes the quotes off a name, and the backslashes within them.
func UnquoteName(s string) string {
	if len(s) < 2 || strings.IndexByte("'`\"", s[0]) < 0 || endOfQuote(s, 0) != len(s)-1 {
		return s
	}
	var out strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// ColumnsOf gives the columns that an expression reads. pure is false where it
// reads none, or calls what is not a function of them.
func ColumnsOf(expr string) (columns []string, pure bool) {
	for i := 0; i < len(expr); {
		switch c := expr[i]; {
		case c == '\'':
			i = endOfQuote(expr, i) + 1
		case c == '`' || c == '"':
			end := min(endOfQuote(expr, i), len(expr))
			columns = append(columns, expr[i+1:end])
			i = end + 1
		case isWordByte(c):
			start := i
			for i < len(expr) && isWordByte(expr[i]) {
				i++
			}
			called := strings.HasPrefix(strings.TrimLeft(expr[i:], " "), "(")
			switch {
			case called && !isPure(expr[start:i]):
				return nil, false
			case !called && (c < '0' || c > '9'):
				columns = append(columns, expr[start:i])
			}
		default:
			i++
		}
	}
	slices.Sort(columns)
	return slices.Compact(columns), len(columns) > 0
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isPure says that a function gives the same for the same arguments at any
// time on any node.
func isPure(function string) bool {
	lower := strings.ToLower(function)
	return !slices.ContainsFunc([]string{
		"rand", "generateuuid", "now", "today", "yesterday", "hostname", "fqdn", "rownumber", "block", "dict", "joinget", "fuzz", "uptime", "shard",
	}, func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
}
