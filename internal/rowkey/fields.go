package rowkey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// builtins are the fields that are not dimensions.
var builtins = []string{"salt", "lvl", "tp", "date"}

// laterForms and laterFields are planned; they get an answer of their own.
var (
	laterForms = []string{"desc", "asc", "md5", "crc32", "murmur3", "fnv1a", "hex", "bin", "rev", "reverse", "reversed",
		"le2", "le4", "le8", "be1", "be2", "be16", "float4", "float8", "double", "float", "days", "upper", "lower", "ordered",
		"varchar", "bigint", "integer", "unsigned_long", "decimal", "timestamp"}
	laterFields = []string{"md5", "crc32", "murmur3", "fnv1a", "hash"}
	knownForms  = []string{"esc", "be4", "be8", "be4s", "be8s", "010"}
	dateForms   = map[string]string{"": "2006-01-02", "yyyy-MM-dd": "2006-01-02", "yyyyMMdd": "20060102"}
)

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
		return token{}, c.unknownField(p)
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
	t.describeDim(c.config.Dims[dim], c.inEveryLevel(dim))
	return t, nil
}

func (c *Codec) unknownField(p part) error {
	if slices.Contains(laterFields, p.field) {
		return templateError(c.config.Template, p.column, p.text()+" is not supported yet", "")
	}
	remedy := "the fields are {" + strings.Join(c.names(), "}, {") + "}"
	if near := nearest(p.field, c.names()); near != "" {
		remedy = "did you mean {" + near + "}? " + remedy
	}
	return templateError(c.config.Template, p.column, "unknown field {"+p.field+"}", remedy)
}

func (c *Codec) compileBuiltin(p part) (token, error) {
	if p.field == "date" {
		return c.compileDate(p)
	}
	if p.form != "" {
		return token{}, templateError(c.config.Template, p.column, p.text()+" is not supported yet", "write {"+p.field+"}")
	}
	switch p.field {
	case "lvl":
		return setToken(p, tokLevel, levelCodes(c.config.Levels)), nil
	case "tp":
		return setToken(p, tokPeriod, periodNames(c.config.Periods)), nil
	}
	if c.has(tokSalt, 0) {
		return token{}, templateError(c.config.Template, p.column, "a second {salt}", "one is enough")
	}
	return token{part: p, kind: tokSalt, width: c.saltWidth, first: setOf(hexLower), rest: setOf(hexLower)}, nil
}

func (c *Codec) compileDate(p part) (token, error) {
	layout, ok := dateForms[p.form]
	if !ok {
		what := p.text() + " is not supported yet"
		if strings.Trim(p.form, "yMdHmsS-/._: ") != "" && !slices.Contains(laterForms, p.form) {
			what = "unknown form " + p.text()
		}
		return token{}, templateError(c.config.Template, p.column, what, "write {date} for yyyy-MM-dd or {date:yyyyMMdd}")
	}
	if c.dateForm != "" && c.dateForm != layout {
		return token{}, templateError(c.config.Template, p.column, "the date in two forms", "write it once")
	}
	c.dateForm = layout
	return token{part: p, kind: tokDate, width: len(layout), first: setOf(digits), rest: setOf("-" + digits)}, nil
}

// compileForm reads the form of a dimension and checks it against its type.
func (c *Codec) compileForm(t *token) error {
	d := c.config.Dims[t.dim]
	integer := d.Type.Kind == row.UInt || d.Type.Kind == row.Int
	switch t.part.form {
	case "":
		t.form = formText
		return nil
	case "esc":
		t.form = formEsc
		return nil
	case "be4", "be8", "be4s", "be8s":
		t.form, t.width = formBE, int(t.part.form[2]-'0')
		if strings.HasSuffix(t.part.form, "s") {
			t.form = formBESigned
		}
	default:
		width, err := strconv.Atoi(t.part.form)
		if err != nil || t.part.form[0] != '0' || width < 1 || width > 64 {
			return c.unknownForm(t.part)
		}
		t.form, t.width = formPadded, width
	}
	if !integer {
		return templateError(c.config.Template, t.column, fmt.Sprintf("%s needs an integer of at most 64 bits, and %s is %s", t.text(), d.Name, d.Type.Name),
			"write {"+d.Name+":esc}, or make the expression an integer, for example with toUInt64(…)")
	}
	return nil
}

func (c *Codec) unknownForm(p part) error {
	base, _, _ := strings.Cut(p.form, ":")
	remedy := "the forms are :esc, :be4, :be8, :be4s, :be8s and zero padding such as :010"
	if slices.Contains(laterForms, base) || len(p.form) > 1 && strings.Trim(p.form, digits) == "" {
		return templateError(c.config.Template, p.column, p.text()+" is not supported yet", remedy)
	}
	if near := nearest(p.form, append(slices.Clone(knownForms), laterForms...)); near != "" {
		remedy = "did you mean {" + p.field + ":" + near + "}? " + remedy
	}
	return templateError(c.config.Template, p.column, "unknown form "+p.text(), remedy)
}

// checkNullWidth refuses a NULL text that does not fit a fixed-width field.
func (c *Codec) checkNullWidth(t *token) error {
	d := c.config.Dims[t.dim]
	if t.width == 0 || !d.nullPossible() || len(d.nullText()) == t.width {
		return nil
	}
	return templateError(c.config.Template, t.column, fmt.Sprintf("NULL of %s becomes %q, which is not the %d bytes of %s", d.Name, d.nullText(), t.width, t.text()),
		fmt.Sprintf("null: reject, a literal of %d bytes, or an expression such as ifNull(%s, 0)", t.width, d.Name))
}
