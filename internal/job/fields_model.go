package job

import (
	"fmt"
	"slices"
	"strings"
)

// dimensionFields are the keys of a dimension that is a mapping.
func (d *decoder) dimensionFields(dim *Dimension) []field {
	return append([]field{
		{key: "name", typ: "text", required: true, read: d.textField(&dim.Name, checkName),
			doc: "Used in row keys, levels and logs: `[A-Za-z_][A-Za-z0-9_]*`, unique, not `salt`, `lvl`, `tp`, `date` or `md5`."},
		{key: "expr", typ: "SQL", def: "the name", read: d.expr(&dim.Expr, sqlExpression),
			doc: "An expression over the table's columns."},
		{key: "null", typ: "text or mapping", def: "`reject`", read: d.null(&dim.Null, NullReject),
			doc: "What NULL becomes in a key: `reject` (the run fails), `empty` (no bytes) or `{literal: \"x\"}`."},
	}, later("type", "encode")...)
}

func (d *decoder) dimensions(n *node) {
	d.list(n, "dimensions", func(_ int, item *node) {
		dim := Dimension{Null: NullPolicy{Mode: NullReject}}
		switch item.kind {
		case kindMap:
			d.mapping(item, d.dimensionFields(&dim))
		default:
			s, ok := d.nonEmpty(item)
			if !ok {
				return
			}
			if !isName(s) {
				d.report(item.at, `for an expression write {name: …, expr: "…"}`, "%s: not a column's name", name(item))
				return
			}
			d.textField(&dim.Name, checkName)(item)
		}
		if dim.Name == "" {
			return
		}
		if dim.Expr == "" {
			dim.Expr = dim.Name
		}
		d.job.Dimensions = append(d.job.Dimensions, dim)
		d.dimensionPaths = append(d.dimensionPaths, item.path)
	})
}

func (d *decoder) expr(dst *string, form sqlForm) func(*node) {
	return func(n *node) {
		if s, ok := d.sql(n, form); ok {
			*dst = s
		}
	}
}

// null reads a NULL policy: mode is the one, besides empty and literal, that
// goes here.
func (d *decoder) null(dst *NullPolicy, mode NullMode) func(*node) {
	return func(n *node) {
		if n.kind == kindMap {
			dst.Mode = NullLiteral
			d.mapping(n, []field{{key: "literal", required: true, read: func(n *node) {
				if s, ok := d.text(n); ok {
					dst.Literal = s
				}
			}}})
			return
		}
		if n.kind == kindText && n.text == string(NullLiteral) {
			d.report(n.at, `write {literal: "…"}`, "%s: the text is missing", name(n))
			return
		}
		if s, ok := d.choice(n, []string{string(mode), string(NullEmpty)}, nil); ok {
			*dst = NullPolicy{Mode: NullMode(s)}
		}
	}
}

// metricFields are the keys of a metric that is a mapping.
func (d *decoder) metricFields(m *Metric) []field {
	return append([]field{
		{key: "expr", typ: "SQL", required: true, read: d.expr(&m.Expr, sqlMetric),
			doc: "An aggregate expression over the table's columns."},
		{key: "encode", typ: "text", def: "`auto`", read: d.encode(&m.Encode),
			doc: "How the value becomes a cell: `auto` (by its type), `text`, `int32`, `int64`, `float64`, `decimal`, `bool`, or a type of Phoenix: `phoenix_unsigned_long`, `phoenix_bigint`, `phoenix_integer`, `phoenix_double`, `phoenix_date`, `phoenix_timestamp`, `phoenix_decimal`, `phoenix_varchar`."},
		{key: "null", typ: "text or mapping", def: "`skip`", read: d.null(&m.Null, NullSkip),
			doc: "What NULL becomes: `skip` (no cell), `empty` (a cell without bytes) or `{literal: \"x\"}`."},
	}, later("additive", "tolerance", "scale")...)
}

func (d *decoder) metrics(n *node) {
	if n.kind != kindMap {
		d.wants(n, "a mapping of names to expressions", "write   pv: sum(pv)")
		return
	}
	if len(n.keys) == 0 {
		d.report(n.at, "", "there is no metric")
	}
	seen := map[string]place{}
	for _, e := range n.keys {
		if first, dup := seen[e.key]; dup {
			d.report(e.at, "keep one of the two", "the metric %q is given twice; first in line %d", shownKey(e.key), first.line)
			continue
		}
		seen[e.key] = e.at
		if err := checkName(e.key); err != nil {
			d.report(e.at, "", "a metric's name: %v", err)
			continue
		}
		m := Metric{Name: e.key, Encode: EncodeAuto, Null: NullPolicy{Mode: NullSkip}}
		if e.value.kind == kindMap && !d.looksLikeText(e.value) {
			d.mapping(e.value, d.metricFields(&m))
		} else {
			d.expr(&m.Expr, sqlMetric)(e.value)
		}
		d.job.Metrics = append(d.job.Metrics, m)
	}
}

// looksLikeText finds braces that were meant as a text, as in {start}.
func (d *decoder) looksLikeText(n *node) bool {
	return n.flow && len(n.keys) == 1 && n.keys[0].value.kind == kindNull
}

func (d *decoder) encode(dst *Encoding) func(*node) {
	return func(n *node) {
		known := []string{string(EncodeAuto), string(EncodeText), string(EncodeInt32), string(EncodeInt64),
			string(EncodeFloat64), string(EncodeDecimal), string(EncodeBool)}
		for _, name := range []string{"unsigned_long", "bigint", "integer", "double", "date", "timestamp", "decimal", "varchar"} {
			known = append(known, "phoenix_"+name)
		}
		if s, ok := d.choice(n, known, []string{"json", "bytes"}); ok {
			*dst = Encoding(s)
		}
	}
}

// levelNodes are a level's values before the dimensions are known.
type levelNodes struct {
	code       string
	codeAt     place
	dimensions *node
}

func (d *decoder) levelFields(l *levelNodes) []field {
	return append([]field{
		{key: "code", typ: "text", required: true,
			read: func(n *node) {
				l.codeAt = n.at
				d.textField(&l.code, checkCode)(n)
			},
			doc: "The level's `{lvl}` in row keys: letters, digits, `_`, `-`; unique."},
		{key: "dimensions", typ: "list of texts", required: true, read: func(n *node) { l.dimensions = n },
			doc: "Names of dimensions, at least one."},
	}, later("metrics", "periods")...)
}

func (d *decoder) levels(n *node) {
	var all []*levelNodes
	d.list(n, "levels", func(_ int, item *node) {
		l := &levelNodes{}
		d.mapping(item, d.levelFields(l))
		all = append(all, l)
	})
	// First of all that comes after: other checks look at the levels.
	d.after = append([]func(){func() { d.resolveLevels(n, all) }}, d.after...)
}

func (d *decoder) resolveLevels(n *node, all []*levelNodes) {
	codes, groups := map[string]bool{}, map[string]string{}
	for _, l := range all {
		if l.code == "" || l.dimensions == nil {
			continue
		}
		if codes[l.code] {
			d.report(l.codeAt, "give each level a code of its own", "the level code %q is given twice", l.code)
		}
		codes[l.code] = true
		level := Level{Code: l.code, Dimensions: d.dimensionList(l.dimensions)}
		sorted := slices.Sorted(slices.Values(level.Dimensions))
		if other, dup := groups[fmt.Sprint(sorted)]; dup && len(sorted) > 0 {
			d.report(l.dimensions.at, "remove one", "level %q groups by the same dimensions as level %q", l.code, other)
		}
		groups[fmt.Sprint(sorted)] = l.code
		d.job.Levels = append(d.job.Levels, level)
	}
	d.checkUnused(n)
}

// checkUnused refuses a dimension that nothing groups by: most likely a level
// was forgotten.
func (d *decoder) checkUnused(n *node) {
	if len(d.problems) > 0 {
		return // what is missing may be there, misspelt
	}
	for i, dim := range d.job.Dimensions {
		if !slices.ContainsFunc(d.job.Levels, func(l Level) bool { return slices.Contains(l.Dimensions, i) }) {
			d.report(n.at, "add it to a level, or remove it from dimensions", "the dimension %q is in no level", dim.Name)
		}
	}
}

// dimensionList reads a list of names of known dimensions.
func (d *decoder) dimensionList(n *node) []int {
	var indexes []int
	d.list(n, "dimensions", func(_ int, item *node) {
		s, ok := d.nonEmpty(item)
		if !ok {
			return
		}
		i, ok := d.dimensionIndex(item, s)
		if !ok {
			return
		}
		if slices.Contains(indexes, i) {
			d.report(item.at, "remove one", "the dimension %q is given twice", s)
			return
		}
		indexes = append(indexes, i)
	})
	return indexes
}

func (d *decoder) dimensionIndex(n *node, s string) (int, bool) {
	names := make([]string, len(d.job.Dimensions))
	for i, dim := range d.job.Dimensions {
		names[i] = dim.Name
	}
	if i := slices.Index(names, s); i >= 0 {
		return i, true
	}
	d.report(n.at, "the dimensions are: "+strings.Join(names, ", "), "%s: unknown dimension%s", name(n), didYouMean(s, names))
	return 0, false
}

// defaultLevel makes the level of a file that has none.
func (d *decoder) defaultLevel() {
	if len(d.job.Levels) > 0 || len(d.job.Dimensions) == 0 {
		return
	}
	level := Level{Code: strings.Repeat("1", len(d.job.Dimensions))}
	for i := range d.job.Dimensions {
		level.Dimensions = append(level.Dimensions, i)
	}
	d.job.Levels = []Level{level}
}
