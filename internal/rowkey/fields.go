package rowkey

import (
	"fmt"
	"slices"
	"strings"
)

// builtins are the fields that are not dimensions.
var builtins = []string{"salt", "lvl", "tp", "date", "md5"}

// compilePart makes a token of a part of the template.
func (c *Codec) compilePart(p part) (token, error) {
	if p.field == "" {
		return literalToken(p), nil
	}
	if slices.Contains(builtins, p.field) {
		return c.compileBuiltin(p)
	}
	dim := slices.IndexFunc(c.config.Dims, func(d Dim) bool { return d.Name == p.field })
	if dim < 0 {
		return c.compileMetric(p)
	}
	if !c.inSome(dim) {
		return token{}, templateError(c.config.Template, p.column, "no level has the dimension "+p.field, "take "+p.text()+" out, or add the dimension to a level")
	}
	t := token{part: p, kind: tokDim, dim: dim, firstOfDim: !c.has(tokDim, dim)}
	if err := c.compileForm(&t); err != nil {
		return token{}, err
	}
	if err := c.checkNullWidth(&t); err != nil {
		return token{}, err
	}
	t.describeDim(c.dims[dim], c.inEveryLevel(dim))
	return t, nil
}

func (c *Codec) unknownField(p part) error {
	remedy := "the fields are {" + strings.Join(c.names(), "}, {") + "}"
	if near := nearest(p.field, c.names()); near != "" {
		remedy = "did you mean {" + near + "}? " + remedy
	}
	return templateError(c.config.Template, p.column, "unknown field {"+p.field+"}", remedy)
}

func (c *Codec) compileBuiltin(p part) (token, error) {
	switch p.field {
	case "date":
		return c.compileDate(p)
	case "md5":
		return c.compileMD5(p)
	}
	if p.form != "" {
		return token{}, templateError(c.config.Template, p.column, p.text()+" is not a field: {"+p.field+"} has no forms", "write {"+p.field+"}")
	}
	switch p.field {
	case "lvl":
		return setToken(p, tokLevel, levelCodes(c.config.Levels)), nil
	case "tp":
		return setToken(p, tokPeriod, periodNames(c.config.Periods)), nil
	}
	return c.compileSalt(p)
}

// compileDate makes the token of the business date, which is written as a
// dimension of type Date32 is.
func (c *Codec) compileDate(p part) (token, error) {
	t := token{part: p, kind: tokDate, dim: len(c.config.Dims)}
	if err := c.compileForm(&t); err != nil {
		return token{}, err
	}
	if number := t.form == formBE || t.form == formBESigned; number && t.width == 1 || t.form == formPadded && t.width < 5 {
		return token{}, templateError(c.config.Template, p.column, p.text()+" is too narrow for a date, which is the number of days since 1970-01-01", "write {date:be4}, {date:05} or {date:yyyyMMdd}")
	}
	if t.form == formEsc {
		return token{}, templateError(c.config.Template, p.column, p.text()+" is not a form of the date: it needs no escapes", "write {date}")
	}
	t.describeDim(c.dims[t.dim], true)
	return t, nil
}

// checkNullWidth refuses a NULL text that does not fit a fixed-width field.
func (c *Codec) checkNullWidth(t *token) error {
	d := c.dims[t.dim]
	if t.width == 0 || !d.nullPossible() || len(d.nullText()) == t.width {
		return nil
	}
	return templateError(c.config.Template, t.column, fmt.Sprintf("NULL of %s becomes %q, which is not the %d bytes of %s", d.Name, d.nullText(), t.width, t.text()),
		fmt.Sprintf("null: reject, a literal of %d bytes, or an expression such as ifNull(%s, 0)", t.width, d.Name))
}
