package rowkey

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A metric in a key is there for its order only: the proof reads over it and
// takes the dimensions alone to tell rows apart, for a group has one row whatever
// its metrics are.

// firstMetric is the place of the metrics in dims.
func (c *Codec) firstMetric() int { return len(c.config.Dims) + 1 }

// subject names what a token writes, for messages.
func (c *Codec) subject(t *token) string {
	if t.kind == tokMetric {
		return "metric " + t.field
	}
	return "dimension " + t.field
}

// compileMetric makes the token of a metric.
func (c *Codec) compileMetric(p part) (token, error) {
	metric := slices.IndexFunc(c.config.Metrics, func(m row.Column) bool { return m.Name == p.field })
	if metric < 0 {
		return token{}, c.unknownField(p)
	}
	t := token{part: p, kind: tokMetric, dim: c.firstMetric() + metric}
	if err := c.compileForm(&t); err != nil {
		return token{}, err
	}
	if err := c.checkRank(&t); err != nil {
		return token{}, err
	}
	t.describeDim(c.dims[t.dim], true)
	return t, nil
}

// checkRank refuses a metric whose keys would not sort as it does.
func (c *Codec) checkRank(t *token) error {
	typ := c.dims[t.dim].Type
	fail := func(remedy, format string, args ...any) error {
		return templateError(c.config.Template, t.column, fmt.Sprintf(format, args...), remedy)
	}
	best := "be8"
	switch typ.Kind {
	case row.Int:
		best = "be8s"
	case row.Float:
		best = "float8"
	case row.BigInt, row.Decimal:
		best = "phoenix_decimal"
	case row.String:
		best = "phoenix_varchar"
	}
	switch {
	case typ.Nullable:
		return fail("make the expression one without NULL, for example ifNull(…, 0)", "%s: the metric %s can be NULL (%s), which has no order", t.text(), t.field, typ.Name)
	case t.form == formText, t.form == formEsc, t.mod == reversed:
		return fail(fmt.Sprintf("write {%s:desc:%s} for the largest first, {%s:%s} for the smallest first", t.field, best, t.field, best),
			"%s does not sort as the metric does, and a metric is in a key for its order only", t.text())
	case t.form == formBE && typ.Kind == row.Int:
		return fail(fmt.Sprintf("write {%s}, or make the expression unsigned with toUInt64(…)", strings.TrimSuffix(t.field+":"+t.part.form, "s")+"s"),
			"%s sorts negative numbers behind the others, and %s is %s", t.text(), t.field, typ.Name)
	case t.form == formPattern && !sortsAsDates(t.pattern):
		return fail("write {"+t.field+":desc:yyyyMMdd}", "%s does not sort as dates do", t.text())
	}
	return nil
}

// sortsAsDates says that a pattern has the year before the month before the day.
func sortsAsDates(pattern string) bool {
	year, month, day := strings.Index(pattern, "yyyy"), strings.Index(pattern, "MM"), strings.Index(pattern, "dd")
	return year < month && month < day
}

// Ranks are the names of the metrics in the template, in its order. With one the
// key of a row cannot be made of its dimensions alone.
func (c *Codec) Ranks() []string {
	var names []string
	for i := range c.tokens {
		if t := &c.tokens[i]; t.kind == tokMetric && !slices.Contains(names, t.field) {
			names = append(names, t.field)
		}
	}
	return names
}

// rankNotes warns of metrics that an attempt might compute otherwise.
func (c *Codec) rankNotes() []string {
	var out []string
	for i := range c.tokens {
		if t := &c.tokens[i]; t.kind == tokMetric && c.dims[t.dim].Type.Kind == row.Float {
			out = append(out, fmt.Sprintf("%s: sums of floats depend on the order of the rows. If a slice is tried again and %s differs in its last digit, a group has two keys, and the run is not published; round(…, 6) or a Decimal helps", t.text(), t.field))
		}
	}
	return out
}
