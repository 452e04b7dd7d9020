package fingerprint

import (
	"strings"
)

// distributed reads cluster, database and table off the definition of a
// Distributed table, as in
//
//	Distributed(lab, demo, traffic_local, rand())
//	Distributed('lab', 'demo', 'traffic_local', rand(), 'policy') SETTINGS …
//
// It returns false for what it does not understand.
func distributed(engine string) (cluster, database, table string, ok bool) {
	rest, ok := strings.CutPrefix(engine, "Distributed(")
	if !ok {
		return "", "", "", false
	}
	var args [3]string
	for i := range args {
		if args[i], rest, ok = argument(rest); !ok {
			return "", "", "", false
		}
		next, more := strings.CutPrefix(rest, ",")
		if !more && i < len(args)-1 {
			return "", "", "", false
		}
		rest = next
	}
	return args[0], args[1], args[2], true
}

// argument reads a quoted text or a plain name, and what follows it.
func argument(s string) (text, rest string, ok bool) {
	s = strings.TrimLeft(s, " ")
	if s == "" {
		return "", "", false
	}
	if quote := s[0]; quote == '\'' || quote == '`' || quote == '"' {
		return quoted(s[1:], quote)
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 1 || s[end] != ',' && s[end] != ')' {
		return "", "", false
	}
	return s[:end], s[end:], true
}

func quoted(s string, quote byte) (text, rest string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\'):
			i++
			out.WriteByte(s[i])
		case c == '\\':
			return "", "", false // no name that anybody would give has one
		case c == quote:
			return out.String(), s[i+1:], true
		default:
			out.WriteByte(c)
		}
	}
	return "", "", false
}
