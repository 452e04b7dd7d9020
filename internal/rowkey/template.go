package rowkey

import (
	"fmt"
	"strconv"
	"strings"
)

// part is a piece of a parsed template: literal bytes, or a field.
type part struct {
	literal string
	field   string // the name in braces; empty for a literal
	form    string // after the colon
	column  int    // 1-based byte position in the template
}

// text is the field as it is written in the template.
func (p part) text() string {
	if p.form == "" {
		return "{" + p.field + "}"
	}
	return "{" + p.field + ":" + p.form + "}"
}

// parse cuts a template into literals and fields; no two literals are
// neighbours.
func parse(template string) ([]part, error) {
	var parts []part
	var literal []byte
	start := 0
	flush := func() {
		if len(literal) > 0 {
			parts = append(parts, part{literal: string(literal), column: start + 1})
			literal = nil
		}
	}
	for i := 0; i < len(template); {
		if len(literal) == 0 {
			start = i
		}
		if template[i] == '{' && !strings.HasPrefix(template[i:], "{{") {
			flush()
			p, n, err := parseField(template, i)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
			i += n
			continue
		}
		c, n, err := parseLiteral(template, i)
		if err != nil {
			return nil, err
		}
		literal = append(literal, c)
		i += n
	}
	flush()
	return parts, nil
}

func parseField(template string, at int) (part, int, error) {
	end := strings.IndexByte(template[at:], '}')
	if end < 0 {
		return part{}, 0, templateError(template, at+1, "the { has no }", "write {{ for a brace in the key")
	}
	inside := template[at+1 : at+end]
	name, form, colon := strings.Cut(inside, ":")
	if name == "" || strings.ContainsAny(inside, "{\\") || colon && form == "" {
		return part{}, 0, templateError(template, at+1, fmt.Sprintf("{%s} is not a field", inside), "a field is {name} or {name:form}")
	}
	return part{field: name, form: form, column: at + 1}, end + 1, nil
}

// parseLiteral reads one literal byte and tells how many of the template it took.
func parseLiteral(template string, at int) (byte, int, error) {
	rest := template[at:]
	switch {
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"), strings.HasPrefix(rest, `\\`):
		return rest[0], 2, nil
	case rest[0] == '}':
		return 0, 0, templateError(template, at+1, "the } has no {", "write }} for a brace in the key")
	case rest[0] != '\\':
		return rest[0], 1, nil
	}
	if len(rest) >= 4 && rest[1] == 'x' {
		if n, err := strconv.ParseUint(rest[2:4], 16, 8); err == nil {
			return byte(n), 4, nil
		}
	}
	return 0, 0, templateError(template, at+1, "an unknown escape", `write \\ for a backslash and \xNN for the byte with the hex number NN`)
}
