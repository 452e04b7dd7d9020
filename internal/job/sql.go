package job

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A sqlError is a place in an SQL text where it could not be taken apart, or
// where it would change the query around it.
type sqlError struct {
	offset int // in bytes
	msg    string
	remedy string
}

func (e *sqlError) Error() string { return e.msg }

// A sqlForm is what an SQL text may be.
type sqlForm int

const (
	// sqlExpression is an expression without placeholders.
	sqlExpression sqlForm = iota
	// sqlMetric is one of an aggregate.
	sqlMetric
	// sqlFilter is an expression with the placeholders of [Render].
	sqlFilter
	// sqlQuery is a whole SELECT with those of [RenderQuery].
	sqlQuery
)

// placeholders are those of a form, in the order of the documentation.
func (f sqlForm) placeholders() []string {
	switch f {
	case sqlFilter:
		return []string{"start", "end", "date", "tp"}
	case sqlQuery:
		return []string{"slice", "start", "end", "date", "tp"}
	}
	return nil
}

// A sqlPiece is a stretch of an SQL text: verbatim, or the name of a
// placeholder.
type sqlPiece struct {
	text        string
	placeholder string
}

// scanSQL takes an SQL expression apart and refuses whatever could reach out
// of the parentheses that the caller puts around it: unbalanced brackets and
// quotes, comments, a semicolon, and characters that some server versions
// take for quotes or comments and others do not. Braces outside of quotes are
// the placeholders of the form, or doubled for a brace itself.
func scanSQL(text string, form sqlForm) ([]sqlPiece, *sqlError) {
	s := &sqlScanner{text: text, form: form}
	if strings.TrimSpace(text) == "" {
		return nil, s.fail(0, "an SQL expression is missing", "")
	}
	for s.pos < len(s.text) {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	if n := len(s.open); n > 0 {
		return nil, s.fail(s.open[n-1], fmt.Sprintf("this %c is never closed", text[s.open[n-1]]), "")
	}
	s.flush(len(text))
	return s.pieces, nil
}

type sqlScanner struct {
	text   string
	form   sqlForm
	pos    int
	from   int   // start of the verbatim stretch under way
	open   []int // offsets of the brackets that are open
	pieces []sqlPiece
}

func (s *sqlScanner) fail(offset int, msg, remedy string) *sqlError {
	return &sqlError{offset: offset, msg: msg, remedy: remedy}
}

// flush ends a verbatim stretch.
func (s *sqlScanner) flush(end int) {
	if end > s.from {
		s.pieces = append(s.pieces, sqlPiece{text: s.text[s.from:end]})
	}
}

// step consumes one character, quoted text or placeholder.
func (s *sqlScanner) step() *sqlError {
	c := s.text[s.pos]
	switch c {
	case '\'', '"', '`':
		return s.quoted(c)
	case '(', '[':
		s.open = append(s.open, s.pos)
	case ')', ']':
		return s.closing(c)
	case '{', '}':
		return s.brace(c)
	case ',':
		if len(s.open) == 0 && s.form != sqlQuery {
			return s.fail(s.pos, "a comma outside of parentheses makes two expressions of one", "write one expression, or a tuple in parentheses")
		}
	default:
		if err := s.forbidden(c); err != nil {
			return err
		}
		if isWord(c) {
			return s.word()
		}
	}
	s.pos++
	return nil
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// ownPrefix begins the names that the mover gives to columns of its queries.
const ownPrefix = "_ck2hbase"

// blockFunctions give values that depend on how rows are divided into blocks.
var blockFunctions = []string{
	"rownumberinblock", "rownumberinallblocks", "blocknumber", "blocksize", "neighbor", "runningaccumulate",
	"runningdifference", "runningdifferencestartingwithfirstvalue", "runningconcurrency",
}

// isRandom tells functions whose values no two queries agree on.
func isRandom(word string) bool {
	lower := strings.ToLower(word)
	return slices.Contains([]string{"rand", "rand32", "rand64", "randconstant", "randcanonical"}, lower) ||
		strings.HasPrefix(lower, "random") || strings.HasPrefix(lower, "generateuuid") || strings.HasPrefix(lower, "generateulid")
}

// word consumes a name, and refuses those that a slice would compute for its
// own rows alone, and those that hide the mover's own.
func (s *sqlScanner) word() *sqlError {
	start := s.pos
	for s.pos < len(s.text) && isWord(s.text[s.pos]) {
		s.pos++
	}
	word := s.text[start:s.pos]
	next := strings.TrimLeft(s.text[s.pos:], " \t\n")
	switch {
	case strings.HasPrefix(word, ownPrefix):
		return s.fail(start, "names that begin with "+ownPrefix+" are the mover's own", "rename the column")
	case strings.EqualFold(word, "OVER") && strings.HasPrefix(next, "("):
		return s.fail(start, "a window function would see the groups of its own slice alone", "compute it from the rows in HBase, or in a view that the source is")
	case s.form == sqlQuery && (strings.EqualFold(word, "SETTINGS") || strings.EqualFold(word, "FORMAT")) && next != "" && isWord(next[0]):
		return s.fail(start, word+" does not belong into the query: the mover's own limits and format are in force", "remove it")
	case s.form == sqlQuery && (strings.EqualFold(word, "LIMIT") || strings.EqualFold(word, "TOTALS")):
		return s.fail(start, word+" would hold for each slice by itself", "leave it out: the rows in HBase are those of all slices together")
	case strings.HasPrefix(next, "(") && isRandom(word):
		return s.fail(start, word+" gives something else each time it is asked", "use an expression of the row alone")
	case s.form == sqlMetric && strings.EqualFold(word, "arrayJoin") && strings.HasPrefix(next, "("):
		return s.fail(start, word+" would repeat the rows for all metrics, the count of rows among them", "use an -Array combinator, as uniqExactArray(x), or arrayJoin in a dimension")
	case slices.Contains(blockFunctions, strings.ToLower(word)):
		return s.fail(start, word+" depends on how the rows are divided, which differs from slice to slice", "use an expression of the row alone")
	}
	return nil
}

func (s *sqlScanner) forbidden(c byte) *sqlError {
	rest := s.text[s.pos:]
	switch {
	case c == ';':
		return s.fail(s.pos, "a semicolon would end the query", "remove it")
	case strings.HasPrefix(rest, "--"):
		return s.fail(s.pos, "-- begins a comment that would swallow the rest of the query", "put a space between the two minus signs, or move the comment into YAML (# …)")
	case strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "*/"), c == '#':
		return s.fail(s.pos, "a comment does not belong into an expression", "move it into YAML (# …)")
	case c == '\\' || c == '$':
		return s.fail(s.pos, fmt.Sprintf("%c outside of quotes does not mean the same to every ClickHouse version", c), "put it in quotes")
	case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
		return s.fail(s.pos, fmt.Sprintf("control character %#x", c), "remove it")
	case c >= utf8.RuneSelf:
		r, _ := utf8.DecodeRuneInString(rest)
		return s.fail(s.pos, fmt.Sprintf("%q outside of quotes", r), "put texts in '…' and names in `…`")
	}
	return nil
}

// quoted skips a text or name in quotes. A backslash takes the next character
// with it, as does, by itself, a doubled quote: it ends one text and begins another.
func (s *sqlScanner) quoted(quote byte) *sqlError {
	start := s.pos
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch s.text[s.pos] {
		case '\\':
			s.pos++
		case 0:
			return s.fail(s.pos, "control character 0x0", "remove it")
		case quote:
			s.pos++
			if quote != '\'' && strings.HasPrefix(s.text[start+1:], ownPrefix) {
				return s.fail(start, "names that begin with "+ownPrefix+" are the mover's own", "rename the column")
			}
			return s.hiddenPlaceholder(start)
		}
	}
	return s.fail(start, fmt.Sprintf("the quote %c is never closed", quote), "")
}

// hiddenPlaceholder refuses what looks like a placeholder within quotes, which
// could only surprise: it would stay as it is.
func (s *sqlScanner) hiddenPlaceholder(start int) *sqlError {
	for _, name := range s.form.placeholders() {
		if i := strings.Index(s.text[start:s.pos], "{"+name+"}"); i >= 0 {
			return s.fail(start+i, fmt.Sprintf("{%s} is not replaced within quotes", name),
				"take it out of the quotes: a date is a Date value and {tp} a text already; for other forms use toString({date}) or formatDateTime")
		}
	}
	return nil
}

func (s *sqlScanner) closing(c byte) *sqlError {
	n := len(s.open)
	if n == 0 {
		return s.fail(s.pos, fmt.Sprintf("this %c closes nothing", c), "")
	}
	if opened := s.text[s.open[n-1]]; (opened == '(') != (c == ')') {
		return s.fail(s.pos, fmt.Sprintf("this %c does not match the %c before it", c, opened), "")
	}
	s.open = s.open[:n-1]
	s.pos++
	return nil
}

func (s *sqlScanner) brace(c byte) *sqlError {
	if s.form == sqlExpression || s.form == sqlMetric {
		return s.fail(s.pos, fmt.Sprintf("%c: placeholders stand in source.where and in sql alone", c), "remove it; for a map write map(…)")
	}
	rest := s.text[s.pos:]
	if len(rest) > 1 && rest[1] == c {
		s.flush(s.pos + 1) // one of the two
		s.pos += 2
		s.from = s.pos
		return nil
	}
	end := strings.IndexByte(rest, '}')
	if c == '}' || end < 0 {
		return s.fail(s.pos, fmt.Sprintf("a single %c", c), "write a placeholder as {date}, and a brace itself doubled")
	}
	name := rest[1:end]
	if slices.Contains(s.form.placeholders(), name) {
		s.flush(s.pos)
		s.pieces = append(s.pieces, sqlPiece{placeholder: name})
		s.pos += end + 1
		s.from = s.pos
		return nil
	}
	return s.fail(s.pos, fmt.Sprintf("unknown placeholder {%s}", name)+didYouMean(name, s.form.placeholders()),
		"there are {"+strings.Join(s.form.placeholders(), "}, {")+"}; write a brace itself doubled")
}
