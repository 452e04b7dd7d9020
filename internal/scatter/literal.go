package scatter

import (
	"fmt"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A literal is the way of a type's values through text into SQL.
type literal struct {
	// text is the SQL that makes a text of a value, %s; write makes SQL of it.
	text  string
	write func(text string) string
}

// literalOf gives the literals of a type. Types of which two values can be
// equal in one place and not in another (floats) have none.
func literalOf(t row.Type) (literal, bool) {
	cast := func(text string) string { return "CAST(" + quoteBytes(text) + " AS " + t.Base + ")" }
	call := func(format string) func(string) string {
		return func(text string) string { return fmt.Sprintf(format, quoteBytes(text)) }
	}
	switch t.Kind {
	case row.UInt:
		return literal{"toString(%s)", func(text string) string { return text }}, true
	case row.Int, row.BigInt, row.Decimal:
		return literal{"toString(%s)", cast}, true
	case row.Date:
		if t.Base == "Date" {
			return literal{"toString(%s)", call("toDate(%s)")}, true
		}
		return literal{"toString(%s)", cast}, true
	case row.DateTime:
		if strings.HasPrefix(t.Base, "DateTime64") {
			zoned := fmt.Sprintf("DateTime64(%d, 'UTC')", t.Scale)
			return literal{"toString(CAST(%s AS " + zoned + "))", func(text string) string { return "CAST(" + quoteBytes(text) + " AS " + zoned + ")" }}, true
		}
		// As a number: texts depend on the time zone.
		return literal{"toString(toUInt32(%s))", func(text string) string { return "toDateTime(" + text + ")" }}, true
	case row.String:
		switch {
		case t.Length > 0:
			return literal{"toString(%s)", call("toFixedString(%s, " + fmt.Sprint(t.Length) + ")")}, true
		case t.Base == "String":
			return literal{"toString(%s)", quoteBytes}, true
		case t.Base == "UUID":
			return literal{"toString(%s)", call("toUUID(%s)")}, true
		}
	}
	return literal{}, false
}

// quoteBytes writes a string literal of any bytes.
func quoteBytes(s string) string {
	var out strings.Builder
	out.WriteByte('\'')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&out, `\x%02X`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('\'')
	return out.String()
}
