package rowkey

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// forms is what messages say of the forms.
const forms = "the forms are :esc, :be1 :be2 :be4 :be8 (with s for signed order, as :be8s), :float4, :float8, zero padding such as :010, dates such as :yyyyMMdd and types of Phoenix such as :phoenix_bigint; " +
	"desc: or rev: in front inverts or reverses the bytes, as in :desc:be8s or :rev"

// knownForms are candidates for what was meant.
var knownForms = []string{"esc", "be1", "be2", "be4", "be8", "be1s", "be2s", "be4s", "be8s", "float4", "float8", "010", "rev", "yyyyMMdd", "yyyy-MM-dd",
	"phoenix_unsigned_long", "phoenix_bigint", "phoenix_integer", "phoenix_double", "phoenix_date", "phoenix_timestamp", "phoenix_decimal", "phoenix_varchar"}

// compileForm reads the form of a dimension or of the business date and checks
// it against the type.
func (c *Codec) compileForm(t *token) error {
	name, hasName := t.part.form, true
	if rest, ok := strings.CutPrefix(name, "desc"); ok && (rest == "" || rest[0] == ':') {
		t.mod = descending
		name, hasName = strings.CutPrefix(rest, ":")
	} else if rest, ok := strings.CutPrefix(name, "rev"); ok && (rest == "" || rest[0] == ':') {
		t.mod = reversed
		name, hasName = strings.CutPrefix(rest, ":")
	}
	if err := c.readForm(t, name, hasName); err != nil {
		return err
	}
	if t.mod == descending && (t.form == formText || t.form == formEsc) {
		return templateError(c.config.Template, t.column, fmt.Sprintf("%s needs a form of fixed width: inverted texts of different lengths do not sort backwards", t.text()),
			fmt.Sprintf("write {%s:desc:be8}, {%s:desc:be8s}, {%s:desc:float8} or {%s:desc:010}", t.field, t.field, t.field, t.field))
	}
	return nil
}

// readForm reads a form without its modifier.
func (c *Codec) readForm(t *token, name string, given bool) error {
	switch name {
	case "":
		t.form = formText
		if t.part.form != "" && given {
			return c.unknownForm(t.part) // a colon with nothing behind
		}
		if t.kind == tokDate {
			t.form, t.pattern, t.width = formPattern, "yyyy-MM-dd", 10
		}
		return nil
	case "esc":
		t.form = formEsc
		return nil
	case "be1", "be2", "be4", "be8", "be1s", "be2s", "be4s", "be8s":
		t.form, t.width = formBE, int(name[2]-'0')
		if strings.HasSuffix(name, "s") {
			t.form = formBESigned
		}
		return c.needsInteger(t)
	case "float4", "float8":
		t.form, t.width = formFloat, int(name[5]-'0')
		return c.needsFloat(t)
	}
	if p, ok := phoenixNamed(name); ok {
		t.form, t.phoenix, t.width = formPhoenix, p, phoenixWidths[p]
		return c.needsPhoenix(t)
	}
	if isPattern(name) {
		t.form, t.pattern, t.width = formPattern, name, len(name)
		return c.needsDate(t)
	}
	width, err := strconv.Atoi(name)
	if err != nil || name[0] != '0' || width < 1 || width > 64 {
		return c.unknownForm(t.part)
	}
	t.form, t.width = formPadded, width
	return c.needsInteger(t)
}

func (c *Codec) needsInteger(t *token) error {
	d := c.dims[t.dim]
	switch d.Type.Kind {
	case row.UInt, row.Int, row.Date, row.DateTime:
		return nil
	}
	return templateError(c.config.Template, t.column, fmt.Sprintf("%s needs an integer of at most 64 bits, a date or a time, and %s is %s", t.text(), d.Name, d.Type.Name),
		"write {"+d.Name+":esc}, or make the expression an integer, for example with toUInt64(…)")
}

func (c *Codec) needsFloat(t *token) error {
	d := c.dims[t.dim]
	if d.Type.Kind == row.Float && (t.width == 8 || d.Type.Bits == 32) {
		return nil
	}
	remedy := "write {" + d.Name + ":float8}"
	if d.Type.Kind != row.Float {
		remedy = "make the expression a number, for example with toFloat64(…), or choose a form that fits: " + forms
	}
	return templateError(c.config.Template, t.column, fmt.Sprintf("%s cannot hold %s, which is %s", t.text(), d.Name, d.Type.Name), remedy)
}

func (c *Codec) needsPhoenix(t *token) error {
	d := c.dims[t.dim]
	if remedy := t.phoenix.check(d.Type); remedy != "" {
		return templateError(c.config.Template, t.column, fmt.Sprintf("%s cannot hold %s, which is %s", t.text(), d.Name, d.Type.Name), remedy)
	}
	return nil
}

func (c *Codec) needsDate(t *token) error {
	d := c.dims[t.dim]
	if err := checkPattern(t.pattern); err != nil {
		return templateError(c.config.Template, t.column, fmt.Sprintf("%s: %v", t.text(), err), "write for example {"+d.Name+":yyyyMMdd}")
	}
	if d.Type.Kind == row.Date {
		return nil
	}
	remedy := "make the expression a date with toDate(…)"
	if d.Type.Kind == row.DateTime {
		remedy += ", or write {" + d.Name + ":be8}: the time since 1970 in units of its type"
	}
	return templateError(c.config.Template, t.column, fmt.Sprintf("%s needs a date, and %s is %s", t.text(), d.Name, d.Type.Name), remedy)
}

func (c *Codec) unknownForm(p part) error {
	remedy := forms
	if near := nearest(p.form, knownForms); near != "" {
		remedy = "did you mean {" + p.field + ":" + near + "}? " + remedy
	}
	return templateError(c.config.Template, p.column, "unknown form "+p.text(), remedy)
}
