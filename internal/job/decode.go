package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A field is one key of a mapping: how it is read and how it is documented.
type field struct {
	key string
	// typ, def and doc are for the reference; def is empty for required keys.
	typ, def, doc string
	required      bool
	// later says that the key belongs to a feature to come.
	later bool
	// fields are the keys of a nested mapping, element those of each mapping
	// in a list, byName those of each value of a mapping with free keys.
	fields, element, byName []field
	// read takes the value; nil reads fields.
	read func(n *node)
}

// A decoder reads one tree into a Job and collects what is wrong.
type decoder struct {
	job      *Job
	opts     Options
	root     *node
	problems Problems
	// dimensionPaths are the paths of job.Dimensions.
	dimensionPaths []string
	// after run when the whole tree is read: checks across keys.
	after []func()
	// secrets must not show in any message.
	secrets []Secret
}

func (d *decoder) report(at place, remedy, format string, args ...any) {
	d.problems = append(d.problems, &Problem{
		Pos: at.pos(), Excerpt: at.excerpt(), Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// mapping reads a mapping by its fields.
func (d *decoder) mapping(n *node, fields []field) {
	if n.kind != kindMap {
		d.wants(n, "a mapping (key: value)", "")
		return
	}
	seen := map[string]place{}
	for _, e := range n.keys {
		if first, dup := seen[e.key]; dup {
			d.report(e.at, "keep one of the two", "the key %q is given twice; first in line %d", shownKey(e.key), first.line)
			continue
		}
		seen[e.key] = e.at
		d.entry(n, e, fields)
	}
	d.missing(n, fields, seen)
}

// missing reports required keys, but for those that an unknown one was most
// likely meant to be.
func (d *decoder) missing(n *node, fields []field, seen map[string]place) {
	known := keysOf(fields)
	meant := map[string]bool{}
	for key := range seen {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == key }) {
			meant[nearest(key, known)] = true
		}
	}
	var keys []string
	for _, f := range fields {
		if _, ok := seen[f.key]; f.required && !ok && !meant[f.key] {
			keys = append(keys, f.key)
		}
	}
	switch len(keys) {
	case 0:
	case 1:
		d.report(n.at, "", "the key %s is missing%s", keys[0], in(n.path))
	default:
		d.report(n.at, "", "the keys %s are missing%s", strings.Join(keys, ", "), in(n.path))
	}
}

// keysOf are the keys that may be given.
func keysOf(fields []field) []string {
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		if !f.later {
			known = append(known, f.key)
		}
	}
	return known
}

func (d *decoder) entry(n *node, e entry, fields []field) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == e.key })
	switch {
	case i < 0:
		d.unknown(n, e, fields)
	case fields[i].later:
		d.report(e.at, "remove it: this version does nothing about it", "%q is not supported yet", join(n.path, shownKey(e.key)))
	case fields[i].read != nil:
		fields[i].read(e.value)
	default:
		d.mapping(e.value, fields[i].fields)
	}
}

func (d *decoder) unknown(n *node, e entry, fields []field) {
	known := keysOf(fields)
	remedy := "known here: " + strings.Join(known, ", ")
	d.report(e.at, remedy, "unknown key %q%s%s", shownKey(e.key), in(n.path), didYouMean(e.key, known))
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func didYouMean(s string, candidates []string) string {
	if best := nearest(s, candidates); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// wants reports a value of the wrong type.
func (d *decoder) wants(n *node, what, remedy string) {
	if n.kind == kindNull && n.path == "" {
		d.report(n.at, "see docs/job-file.md", "the job file is empty")
		return
	}
	if n.kind == kindNull {
		d.report(n.at, remedy, "%s has no value; it wants %s", name(n), what)
		return
	}
	d.report(n.at, remedy, "%s wants %s, not %s", name(n), what, n.kind)
}

func name(n *node) string {
	if n.path == "" {
		return "a job file"
	}
	return n.path
}

// text reads a string with its variables replaced.
func (d *decoder) text(n *node) (string, bool) {
	switch n.kind {
	case kindText:
		return d.expand(n)
	case kindBool, kindInt, kindFloat:
		d.wants(n, "a text", "put it in quotes")
	case kindMap, kindList:
		remedy := "put the value in quotes"
		if n.flow {
			remedy = "a value that begins with a brace or bracket must be put in quotes to be a text"
		}
		d.wants(n, "a text", remedy)
	default:
		d.wants(n, "a text", "")
	}
	return "", false
}

// nonEmpty reads a string that must not be empty.
func (d *decoder) nonEmpty(n *node) (string, bool) {
	s, ok := d.text(n)
	if ok && s == "" {
		d.report(n.at, "", "%s is empty", name(n))
		return "", false
	}
	return s, ok
}

// expand replaces ${NAME} by the environment's value; $${ is a ${ itself.
// Messages show the file's text, never the environment's. A text that has
// variables loses its exact columns.
func (d *decoder) expand(n *node) (string, bool) {
	if !strings.Contains(n.text, "${") {
		return n.text, true
	}
	var out strings.Builder
	rest, ok := n.text, true
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			break
		}
		if i > 0 && rest[i-1] == '$' {
			out.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		out.WriteString(rest[:i])
		at := n.offset(len(n.text) - len(rest) + i)
		variable, after, closed := strings.Cut(rest[i+2:], "}")
		if !closed || !isName(variable) {
			d.report(at, "write ${NAME}, or $${ for the characters themselves", "not a variable")
			return "", false
		}
		value, found := d.lookup(variable)
		if !found {
			at.width = len(variable) + 3
			d.report(at, "set it in the mover's environment: export "+variable+"=…", "the environment variable %s is not set", variable)
			ok = false
		}
		out.WriteString(value)
		rest = after
	}
	n.plain = false
	return out.String() + rest, ok
}

func (d *decoder) lookup(variable string) (string, bool) {
	if d.opts.LookupEnv == nil {
		return "", false
	}
	return d.opts.LookupEnv(variable)
}

// isName tells whether s is [A-Za-z_][A-Za-z0-9_]*.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// number reads a whole number; a text is one only if a variable makes it so.
func (d *decoder) number(n *node, low, high int) (int, bool) {
	text := n.text
	if n.kind == kindText && strings.Contains(text, "${") {
		var ok bool
		if text, ok = d.expand(n); !ok {
			return 0, false
		}
	} else if n.kind != kindInt {
		remedy := ""
		if n.kind == kindText {
			remedy = "write it without quotes and without a unit"
		}
		d.wants(n, fmt.Sprintf("a whole number from %d to %d", low, high), remedy)
		return 0, false
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < low || v > high || strconv.Itoa(v) != text {
		d.report(n.at, "", "%s wants a whole number from %d to %d", name(n), low, high)
		return 0, false
	}
	return v, true
}

func (d *decoder) boolean(dst *bool) func(*node) {
	return func(n *node) {
		if n.kind != kindBool {
			d.wants(n, "true or false", "")
			return
		}
		*dst = n.text == "true" || n.text == "True" || n.text == "TRUE"
	}
}

// intField, textField and listing give the read functions of plain keys.
func (d *decoder) intField(dst *int, low, high int) func(*node) {
	return func(n *node) {
		if v, ok := d.number(n, low, high); ok {
			*dst = v
		}
	}
}

func (d *decoder) textField(dst *string, check func(string) error) func(*node) {
	return func(n *node) {
		s, ok := d.nonEmpty(n)
		if !ok {
			return
		}
		if err := check(s); err != nil {
			d.report(n.at, "", "%s: %v", name(n), err)
			return
		}
		*dst = s
	}
}

// list gives each item of a list that must not be empty.
func (d *decoder) list(n *node, what string, each func(i int, item *node)) {
	if n.kind != kindList {
		d.wants(n, "a list of "+what, "write [a, b], or a line with - for each")
		return
	}
	if len(n.items) == 0 {
		d.report(n.at, "", "%s is empty: it wants at least one item", name(n))
		return
	}
	for i, item := range n.items {
		each(i, item)
	}
}

// choice reads one of the known words; later are words of features to come.
func (d *decoder) choice(n *node, known, later []string) (string, bool) {
	s, ok := d.text(n)
	if !ok {
		return "", false
	}
	switch {
	case slices.Contains(known, s):
		return s, true
	case slices.Contains(later, s):
		d.report(n.at, "known now: "+strings.Join(known, ", "), "%s: %q is not supported yet", name(n), s)
	default:
		d.report(n.at, "known: "+strings.Join(known, ", "), "%s: unknown value%s", name(n), didYouMean(s, known))
	}
	return "", false
}

// size and duration read quantities.
func (d *decoder) size(dst *int64, low int64) func(*node) {
	return func(n *node) {
		const remedy = "write bytes, or a unit: 60GB, 2MiB (kB MB GB TB KiB MiB GiB TiB)"
		text := n.text
		if n.kind == kindText {
			var ok bool
			if text, ok = d.expand(n); !ok {
				return
			}
		} else if n.kind != kindInt {
			d.wants(n, "a size", remedy)
			return
		}
		v, err := parseSize(text)
		if err != nil {
			d.report(n.at, remedy, "%s: %v", name(n), err)
			return
		}
		if v < low {
			d.report(n.at, "", "%s must be at least %d bytes", name(n), low)
			return
		}
		*dst = v
	}
}
