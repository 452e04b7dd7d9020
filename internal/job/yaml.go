package job

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a job file. They keep the parser, which recurses, from running
// out of stack on a file that is none.
const (
	maxFile  = 1 << 20
	maxLine  = 64 << 10
	maxDepth = 64
)

type syntaxError struct {
	message string
	token   *token.Token
}

// parseYAML parses with duplicate keys allowed: they are reported with all
// other problems.
func parseYAML(text string) (file *ast.File, bad *syntaxError) {
	if err := bounded(text); err != nil {
		return nil, &syntaxError{message: err.Error()}
	}
	// A library's slip on odd input must not take the mover down.
	defer func() {
		if r := recover(); r != nil {
			file, bad = nil, &syntaxError{message: "the YAML parser cannot read this"}
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	if located, ok := errors.AsType[yaml.Error](err); ok {
		return nil, &syntaxError{message: located.GetMessage(), token: located.GetToken()}
	}
	return nil, &syntaxError{message: err.Error()}
}

var errDeep = fmt.Errorf("nested deeper than %d", maxDepth)

func bounded(text string) error {
	if len(text) > maxFile {
		return fmt.Errorf("larger than %d bytes", maxFile)
	}
	depth := 0
	for line := range strings.Lines(text) {
		if len(line) > maxLine {
			return fmt.Errorf("a line longer than %d bytes", maxLine)
		}
		markers := line[:len(line)-len(strings.TrimLeft(line, " -?"))]
		if len(markers)-strings.Count(markers, " ") > maxDepth {
			return errDeep
		}
		for i := range len(line) {
			switch line[i] {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > maxDepth {
				return errDeep
			}
		}
	}
	return nil
}
