package job

import (
	"regexp"
	"strings"
	"unicode"
)

// A document is the text of a job file or of one override, for error
// messages. It keeps no line that shows a secret.
type document struct {
	name  string
	lines [][]rune
}

// newDocument takes the text apart and masks what follows a password's key.
func newDocument(name, text string) *document {
	lines := strings.Split(text, "\n")
	d := &document{name: name, lines: make([][]rune, len(lines))}
	m := masker{}
	for i, line := range lines {
		d.lines[i] = []rune(strings.Map(printable, m.line(line)))
	}
	return d
}

// printable keeps a terminal safe from what a job file may hold.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' ' // one column, as the caret counts
	case !unicode.IsPrint(r):
		return '\uFFFD'
	}
	return r
}

// A masker hides values of keys that sound like a secret. It goes by the text
// and not by the syntax tree, for a file with a syntax error has no tree.
type masker struct {
	quote  string // the closing quote that ends a hidden value, or ""
	hiding bool   // hide lines until another key, indented by indent or less
	first  bool   // hide the next line with a text whatever its indentation
	indent int
}

const mask = "***"

var (
	secretKey   = regexp.MustCompile(`(?i)([\w.-]*(?:pass|pas+w|pwd|secret|token|credential)[\w.-]*)["']?\s*[:=]\s*`)
	bareKey     = regexp.MustCompile(`(?i)^[\s\-?{,"']*([\w.-]*(?:pass|pas+w|pwd|secret|token|credential)[\w.-]*)["']?\s*`)
	explicitKey = regexp.MustCompile(`(?i)^\s*\?.*(?:pass|pas+w|pwd|secret|token|credential)`)
	entryLine   = regexp.MustCompile(`^\s*(?:- )?["']?[\w.-]+["']?\s*:(?:\s|$)`)
	variable    = regexp.MustCompile(`^["']?\$\{[A-Za-z_][A-Za-z0-9_]*\}["']?\s*(?:[,}#].*)?$`)
	userInfo    = regexp.MustCompile(`://[^/@\s]*@`)
)

func (m *masker) line(line string) string {
	if m.quote != "" {
		if strings.Contains(line, m.quote) {
			m.quote, m.hiding = "", true
		}
		return mask
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if m.hiding && text != "" {
		if m.first || indent > m.indent || !entryLine.MatchString(line) {
			m.first = false
			return line[:indent] + mask
		}
		m.hiding = false
	}
	return m.visible(line, indent)
}

func (m *masker) visible(line string, indent int) string {
	if explicitKey.MatchString(line) { // ? password, and the value in the next line
		m.hiding, m.first, m.indent = true, true, indent
	}
	line = userInfo.ReplaceAllString(line, "://"+mask+"@")
	keys := secretKey.FindAllStringSubmatchIndex(line, -1)
	if len(keys) == 0 {
		keys = bareKey.FindAllStringSubmatchIndex(line, 1) // its colon may be missing
	}
	for _, at := range keys {
		key, value := line[at[2]:at[3]], line[at[1]:]
		if strings.HasSuffix(strings.ToLower(key), "_file") || variable.MatchString(value) {
			continue
		}
		m.hide(value, indent)
		if strings.TrimSpace(value) == "" {
			return line
		}
		return line[:at[1]] + mask
	}
	return line
}

// hide sets up what the following lines may still show of the value.
func (m *masker) hide(value string, indent int) {
	m.hiding, m.first, m.indent = true, false, indent
	if value == "" || strings.ContainsAny(value[:1], "|>&!#") {
		m.first = true
		return
	}
	if q := value[:1]; (q == `"` || q == "'") && !strings.Contains(value[1:], q) {
		m.quote, m.hiding = q, false
	}
}

// shownKey is a key for a message: without the space of "password: x" the
// secret is a part of the key.
func shownKey(key string) string {
	shown, _, _ := strings.Cut((&masker{}).visible(key, 0), "\n")
	return shown
}

// redact hides a secret's value in a message, should one quote it. Very short
// ones are left: they would tear words apart and tell nothing.
func redact(text string, secrets []Secret) string {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, string(s), mask)
		}
	}
	return userInfo.ReplaceAllString(text, "://"+mask+"@")
}
