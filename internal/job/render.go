package job

import (
	"fmt"
	"strings"
	"time"
)

// Render puts a unit's values into a filter as typed literals: {start} and
// {end} are the first and the last day of the period and {date} the business
// date, each as toDate('2026-10-31'), {tp} is the period's name as a quoted
// text. Doubled braces stand for a brace. Nothing is replaced within quotes.
// The result is balanced and holds no comment: in parentheses it cannot change
// the query around it. An empty filter stays empty. A where that [Load]
// accepted gives no error.
func Render(where string, u Unit) (string, error) {
	if where == "" {
		return "", nil
	}
	pieces, bad := scanSQL(where, sqlFilter)
	if bad != nil {
		return "", fmt.Errorf("where, at byte %d: %w", bad.offset, bad)
	}
	return renderPieces(pieces, u, ""), nil
}

// RenderQuery puts a unit's values, and a condition in place of each {slice},
// into the job's own query. The condition goes in parentheses. The query must
// be one that [Load] accepted.
func RenderQuery(query string, u Unit, condition string) string {
	pieces, bad := scanSQL(query, sqlQuery)
	if bad != nil {
		return query // the server will refuse it
	}
	return renderPieces(pieces, u, "("+condition+")")
}

func renderPieces(pieces []sqlPiece, u Unit, slice string) string {
	var out strings.Builder
	for _, p := range pieces {
		switch p.placeholder {
		case "start":
			out.WriteString(dateLiteral(u.Period.Start))
		case "end":
			out.WriteString(dateLiteral(u.Period.End))
		case "date":
			out.WriteString(dateLiteral(u.Date))
		case "tp":
			out.WriteString("'" + string(u.Period.Period) + "'")
		case "slice":
			out.WriteString(slice)
		default:
			out.WriteString(p.text)
		}
	}
	return out.String()
}

func dateLiteral(date time.Time) string { return "toDate('" + date.Format(dateLayout) + "')" }
