package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A Pos is a place in a job file. Line and Column count from 1, columns in
// characters; both are 0 when the place is not known.
type Pos struct {
	File         string
	Line, Column int
}

// String is file:line:column.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A place is a position with what is needed to show it.
type place struct {
	doc       *document
	line, col int
	width     int // characters to underline
}

func (p place) pos() Pos { return Pos{File: p.doc.name, Line: p.line, Column: p.col} }

// A Problem is one thing that is wrong with a job file.
type Problem struct {
	Pos     Pos
	Message string
	// Excerpt is the line with a caret under it, passwords masked; or empty.
	Excerpt string
	// Remedy is what to do, or empty.
	Remedy string
	// Err is the cause that [Job.ErrorAt] was given, or nil.
	Err error
}

// Error is the position and the message, then the line with its caret, then
// the remedy, each on lines of its own.
func (p *Problem) Error() string {
	text := p.Pos.String() + ": " + p.Message
	if p.Excerpt != "" {
		text += "\n" + p.Excerpt
	}
	if p.Remedy != "" {
		text += "\n  → " + p.Remedy
	}
	return text
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Err }

// Problems are all that is wrong with a job file, in the file's order. More
// than [MaxProblems] are counted only.
type Problems []*Problem

// MaxProblems is the number of problems that are shown at once.
const MaxProblems = 10

// Error lists the problems.
func (p Problems) Error() string {
	parts := make([]string, 0, MaxProblems+1)
	for i, problem := range p {
		if i == MaxProblems {
			parts = append(parts, fmt.Sprintf("… and %d more", len(p)-i))
			break
		}
		parts = append(parts, problem.Error())
	}
	return strings.Join(parts, "\n")
}

// sorted orders by document, as first met, and then by place.
func (p Problems) sorted(main string) Problems {
	slices.SortStableFunc(p, func(a, b *Problem) int {
		if c := cmp.Compare(rank(a.Pos.File, main), rank(b.Pos.File, main)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return p
}

func rank(name, main string) int {
	if name == main {
		return 0
	}
	return 1
}

// Widths of an excerpt: a longer line is cut around the caret.
const (
	excerptWidth  = 120
	excerptBefore = 60
)

// excerpt shows the place's line with a caret under it.
func (p place) excerpt() string {
	if p.doc == nil || p.line < 1 || p.line > len(p.doc.lines) {
		return ""
	}
	line := p.doc.lines[p.line-1]
	col := min(max(p.col, 1)-1, len(line)) // from 0 here
	cutLeft, cutRight := "", ""
	if len(line) > excerptWidth {
		from := max(0, min(col-excerptBefore, len(line)-excerptWidth))
		to := from + excerptWidth
		if from > 0 {
			cutLeft = "…"
		}
		if to < len(line) {
			cutRight = "…"
		}
		line, col = line[from:to], col-from
	}
	gutter := fmt.Sprintf("%5d | ", p.line)
	blank := strings.Repeat(" ", len(gutter)-2) + "| "
	width := min(max(p.width, 1), max(len(line)-col, 1))
	return gutter + cutLeft + string(line) + cutRight + "\n" +
		blank + strings.Repeat(" ", col+len([]rune(cutLeft))) + "^" + strings.Repeat("~", width-1)
}

// ErrorAt shows an error that was found later with the place in the job file
// it is about: path is a key's path as in "metrics.pv" or "levels[0].code",
// or that of a mapping around it. The class and the remedy of a classified
// error are kept; any other becomes [failure.Usage]. The cause stays in the
// chain. A nil err stays nil.
func (j *Job) ErrorAt(path string, err error) error {
	if err == nil {
		return nil
	}
	class := failure.ClassOf(err)
	if class == failure.Bug {
		class = failure.Usage
	}
	problem := &Problem{Pos: Pos{File: j.Path}, Message: redact(err.Error(), []Secret{j.Source.Password}), Err: err}
	if at, ok := j.find(path); ok {
		problem.Pos, problem.Excerpt = at.pos(), at.excerpt()
	} else if path != "" {
		problem.Message = path + ": " + problem.Message
	}
	return failure.New(class, problem, failure.Remedy(err))
}

// Position is the place of a key in the job file, or of the nearest mapping
// around it that the file holds; see [Job.ErrorAt] for paths.
func (j *Job) Position(path string) (Pos, bool) {
	at, ok := j.find(path)
	if !ok {
		return Pos{File: j.Path}, false
	}
	return at.pos(), true
}

// A placeIndex holds the places of a file's keys by path; behind a pointer, so
// that a printed Job stays readable.
type placeIndex struct{ at map[string]place }

func (j *Job) find(path string) (place, bool) {
	if j.places == nil {
		return place{}, false
	}
	for path != "" {
		if at, ok := j.places.at[path]; ok {
			return at, true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{}, false
}

// A problem outside of any document: a file that cannot be read.
func fileError(path string, err error, remedy string) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // the path is shown already
	}
	return failure.New(failure.Usage, fmt.Errorf("%s: %w", path, err), remedy)
}
