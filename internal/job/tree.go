package job

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// kind is what a YAML node holds.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindMap
	kindList
)

// String is the kind in an error message.
func (k kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a number", "a text", "a mapping", "a list"}[k]
}

// A node is a YAML value with its place: the tree of the parser without what a
// job file has no use for, so that overrides can be put in.
type node struct {
	kind  kind
	path  string
	at    place // the value; for a mapping or list in a file, its key
	text  string
	plain bool // the text stands in the file as it is, so offsets are columns
	block bool // the same for a text of several lines after a |
	flow  bool // a mapping or list in braces or brackets
	keys  []entry
	items []*node
}

type entry struct {
	key   string
	at    place
	value *node
}

func (n *node) get(key string) *node {
	for _, e := range n.keys {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// A builder turns the parser's tree into nodes.
type builder struct {
	doc    *document
	src    []string
	shift  int // columns to add in line 1
	report func(p place, remedy, format string, args ...any)
}

// node converts; at is shown for a value without text of its own.
func (b *builder) node(in ast.Node, path string, at place) *node {
	n := &node{path: path, at: at}
	switch in := in.(type) {
	case nil:
	case *ast.NullNode:
		if at.doc == nil { // a whole file of ~ or null
			b.scalar(n, kindNull, in.Token)
		}
	case *ast.BoolNode:
		b.scalar(n, kindBool, in.Token)
	case *ast.IntegerNode:
		b.scalar(n, kindInt, in.Token)
	case *ast.FloatNode:
		b.scalar(n, kindFloat, in.Token)
	case *ast.InfinityNode:
		b.scalar(n, kindFloat, in.Token)
	case *ast.NanNode:
		b.scalar(n, kindFloat, in.Token)
	case *ast.StringNode:
		b.scalar(n, kindText, in.Token)
		n.text = in.Value
		n.plain = b.verbatim(n)
	case *ast.LiteralNode:
		b.scalar(n, kindText, in.Start)
		n.text = strings.TrimSuffix(in.Value.Value, "\n")
		n.block = in.Start.Type == token.LiteralType
	case *ast.MappingNode:
		b.mapping(n, in)
	case *ast.MappingValueNode:
		b.mapping(n, ast.Mapping(in.Start, false, in))
	case *ast.SequenceNode:
		b.list(n, in)
	default:
		b.scalar(n, kindNull, in.GetToken())
		b.report(n.at, "write the value itself", "anchors, aliases, merge keys and tags are not supported in a job file")
	}
	return n
}

func (b *builder) place(tk *token.Token, width int) place {
	p := place{doc: b.doc, line: tk.Position.Line, col: tk.Position.Column, width: width}
	if p.line == 1 {
		p.col += b.shift
	}
	return p
}

func (b *builder) scalar(n *node, k kind, tk *token.Token) {
	n.kind, n.text = k, tk.Value
	n.at = b.place(tk, utf8.RuneCountInString(strings.TrimSpace(tk.Origin)))
}

// verbatim tells whether the text stands in its line as it is, so that an
// offset in it can be shown; it moves the place behind an opening quote.
func (b *builder) verbatim(n *node) bool {
	line, col := n.at.line, n.at.col-1
	if line == 1 {
		col -= b.shift
	}
	if line < 1 || line > len(b.src) {
		return false
	}
	rest := []rune(b.src[line-1])
	if col < 0 || col > len(rest) {
		return false
	}
	in := string(rest[col:])
	if strings.HasPrefix(in, n.text) {
		return true
	}
	if len(in) > 0 && (in[0] == '"' || in[0] == '\'') && strings.HasPrefix(in[1:], n.text) {
		n.at.col++
		n.at.width = utf8.RuneCountInString(n.text)
		return true
	}
	return false
}

func (b *builder) mapping(n *node, in *ast.MappingNode) {
	n.kind, n.flow = kindMap, in.IsFlowStyle
	switch {
	case n.flow:
		n.at = b.place(in.GetToken(), 1)
	case n.at.doc == nil && len(in.Values) > 0: // the root
		n.at = b.place(in.Values[0].Key.GetToken(), 1)
	}
	for _, v := range in.Values {
		tk := v.Key.GetToken()
		if _, explicit := v.Key.(*ast.MappingKeyNode); explicit || v.Key.IsMergeKey() {
			b.report(b.place(tk, 1), "write keys as key: value", "? keys and merge keys are not supported in a job file")
			continue
		}
		key := tk.Value
		at := b.place(tk, utf8.RuneCountInString(strings.TrimSpace(tk.Origin)))
		n.keys = append(n.keys, entry{key: key, at: at, value: b.node(v.Value, join(n.path, shownKey(key)), at)})
	}
}

func (b *builder) list(n *node, in *ast.SequenceNode) {
	n.kind, n.flow = kindList, in.IsFlowStyle
	if n.at.doc == nil || n.flow {
		n.at = b.place(in.GetToken(), 1)
	}
	for i, v := range in.Values {
		at := b.place(in.GetToken(), 1)
		if v != nil && v.GetToken() != nil {
			at = b.place(v.GetToken(), 1)
		}
		if m, ok := v.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
			at = b.place(m.Values[0].Key.GetToken(), 1) // not its colon
		}
		n.items = append(n.items, b.node(v, n.path+"["+strconv.Itoa(i)+"]", at))
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// at is the place of a byte of the node's text, as far as it can be known.
func (n *node) offset(bytes int) place {
	if n.block && bytes <= len(n.text) {
		return n.blockOffset(bytes)
	}
	if !n.plain || bytes > len(n.text) {
		return n.at
	}
	p := n.at
	p.col += utf8.RuneCountInString(n.text[:bytes])
	p.width = 1
	return p
}

// blockOffset finds the line of a block by counting, and its column by the text.
func (n *node) blockOffset(bytes int) place {
	before := n.text[:bytes]
	start := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(n.text[start:], "\n")
	p := n.at
	p.line += strings.Count(before, "\n") + 1
	if p.line > len(n.at.doc.lines) {
		return n.at
	}
	source := string(n.at.doc.lines[p.line-1])
	indent := strings.Index(source, line)
	if indent < 0 {
		return n.at
	}
	p.col = indent + 1 + utf8.RuneCountInString(before[start:])
	p.width = 1
	return p
}

// parseTree parses text as one YAML document. A nil node means that a problem
// was reported.
func (b *builder) parseTree(text string) *node {
	file, err := parseYAML(text)
	if err != nil {
		b.syntax(err)
		return nil
	}
	if len(file.Docs) > 1 {
		at := place{doc: b.doc, line: 1, col: 1}
		if second := file.Docs[1]; second.Start != nil {
			at = b.place(second.Start, 3)
		}
		b.report(at, "put each job into a file of its own", "a second YAML document")
		return nil
	}
	var body ast.Node
	if len(file.Docs) == 1 {
		body = file.Docs[0].Body
	}
	if body == nil {
		return &node{at: place{doc: b.doc, line: 1, col: 1, width: 1}}
	}
	return b.node(body, "", place{})
}

func (b *builder) syntax(err *syntaxError) {
	at := place{doc: b.doc, line: 1, col: 1 + b.shift}
	if err.token != nil && err.token.Position != nil {
		at = b.place(err.token, 1)
	}
	// The parser quotes what it stumbled over, which may be a password.
	b.report(at, b.syntaxRemedy(at.line), "not YAML: %s", quotedText.ReplaceAllString(err.message, ""))
}

var quotedText = regexp.MustCompile(`:? ?"(?:[^"\\]|\\.){3,}"`)

// syntaxRemedy knows the two slips that this file format invites.
func (b *builder) syntaxRemedy(line int) string {
	if line < 1 || line > len(b.src) {
		return ""
	}
	text := b.src[line-1]
	if _, value, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(strings.TrimSpace(value), "{") {
		return fmt.Sprintf("a value that begins with { is a YAML mapping; if it is meant as a text, put it in quotes: %q", "{…}")
	}
	if strings.HasPrefix(strings.TrimLeft(text, " "), "\t") {
		return "indent with spaces"
	}
	return ""
}
