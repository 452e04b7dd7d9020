package job

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	// A container image may hold no time zones.
	_ "time/tzdata"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// Options are what a job file is read with besides its text.
type Options struct {
	// LookupEnv gives the values of ${NAME}, as os.LookupEnv does; nil means
	// that no variable is set.
	LookupEnv func(name string) (string, bool)
	// Overrides are key.path=value pairs that replace or add values after the
	// file was parsed: limits.max_execution_time=30s, levels.0.code="11". The
	// value is YAML, or a text where it is not valid YAML.
	Overrides []string
	// ReadFile reads a password_file, and the files of tls. [Load] sets it to read relative to the
	// job file's directory; in [Parse] nil means that there are no files.
	ReadFile func(path string) ([]byte, error)
}

// Load reads, checks and completes a job file. Every error is a
// [failure.Usage] and shows all that is wrong, as far as that can be known at
// once, in the form of [Problems]. No error holds a password.
func Load(path string, opts Options) (*Job, error) {
	text, err := readFile(path, maxFile)
	if err != nil {
		return nil, fileError(path, err, readRemedy(err))
	}
	if opts.ReadFile == nil {
		opts.ReadFile = func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(path), name)
			}
			return readFile(name, maxSideFile)
		}
	}
	return Parse(path, text, opts)
}

// maxSideFile bounds a file that a job file names: a machine's certificates
// are some 200 kB.
const maxSideFile = 1 << 20

var errTooLarge = errors.New("the file is too large")

// readFile reads a whole file of a sane size; it need not be a regular one.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errTooLarge
	}
	return text, err
}

func readRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "give the path of a job file"
	case errors.Is(err, fs.ErrPermission):
		return "let the mover's user read it"
	}
	return ""
}

// Parse is [Load] for a text; path is shown in messages.
func Parse(path string, text []byte, opts Options) (*Job, error) {
	d := &decoder{job: newJob(path), opts: opts}
	root := d.tree(path, string(text))
	if root != nil {
		d.root = root
		d.mapping(root, d.rootFields())
		for _, check := range d.after {
			check()
		}
	}
	if len(d.problems) > 0 {
		for _, p := range d.problems {
			p.Message = redact(p.Message, d.secrets)
			p.Excerpt = redact(p.Excerpt, d.secrets)
		}
		return nil, failure.New(failure.Usage, d.problems.sorted(path), "")
	}
	d.job.places = &placeIndex{at: map[string]place{}}
	root.places(d.job.places.at)
	return d.job, nil
}

// newJob has the defaults of all keys that are not required.
func newJob(path string) *Job {
	return &Job{
		Path:     path,
		Source:   Source{Protocol: Native, Username: "default", NodeMap: map[string]string{}, OnChange: ChangeWarn},
		Periods:  []Period{Day},
		Timezone: time.UTC,
		Limits: Limits{
			MaxExecutionTime: 600 * time.Second,
			MaxMemoryUsage:   10e9,
		},
		Scatter: Scatter{PerNode: 1},
		Spool:   Spool{MaxBytes: SpoolAuto},
		HBase: HBase{
			Require: RequireAll, Family: "f",
			Create: Create{Compression: "NONE", Versions: 2},
			Batch:  Batch{Rows: 1000, Bytes: 2 << 20, InFlight: 4, Compress: CompressNone},
			WAL:    WALOn,
		},
		Verify: Verify{Level: VerifyCount},
	}
}

// tree parses the file and puts the overrides in; nil if either is not to be
// understood.
func (d *decoder) tree(path, text string) *node {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	b := &builder{doc: newDocument(path, text), src: strings.Split(text, "\n"), report: d.report}
	root := b.parseTree(text)
	if root == nil || len(d.problems) > 0 {
		return nil
	}
	for _, o := range d.opts.Overrides {
		d.override(root, o)
	}
	if len(d.problems) > 0 {
		return nil
	}
	return root
}

// places records where each key stands: the value's place where it has a text
// of its own, else the key's.
func (n *node) places(into map[string]place) {
	into[n.path] = n.at
	for _, e := range n.keys {
		e.value.places(into)
	}
	for _, item := range n.items {
		item.places(into)
	}
	// An expression may be given alone or with more about it.
	if expr := n.get("expr"); expr != nil {
		into[n.path] = expr.at
	}
}

// override puts key.path=value into the tree.
func (d *decoder) override(root *node, text string) {
	doc := newDocument("--config-override", text)
	path, value, ok := strings.Cut(text, "=")
	whole := place{doc: doc, line: 1, col: 1, width: len([]rune(path))}
	if !ok || path == "" {
		d.report(whole, "write key.path=value, as in limits.max_execution_time=30s", "not an override")
		return
	}
	segments := strings.Split(path, ".")
	at, depth := root, 0
	for ; depth < len(segments)-1; depth++ {
		next := at.child(segments[depth], whole)
		if next == nil {
			d.report(whole, "", "nothing can be put into %s", strings.Join(segments[:depth+1], "."))
			return
		}
		at = next
	}
	target := at.child(segments[depth], whole)
	if target == nil {
		d.report(whole, "", "nothing can be put into %s", strings.Join(segments[:depth], "."))
		return
	}
	*target = *d.overrideValue(doc, value, len([]rune(path))+1, target.path)
}

// child is the value of a key, made if need be, or an item of a list.
func (n *node) child(segment string, at place) *node {
	switch n.kind {
	case kindNull:
		n.kind = kindMap
	case kindMap:
	case kindList:
		for i, item := range n.items {
			if segment == fmt.Sprint(i) {
				return item
			}
		}
		return nil
	default:
		return nil
	}
	if found := n.get(segment); found != nil {
		return found
	}
	added := &node{path: join(n.path, segment), at: at}
	n.keys = append(n.keys, entry{key: segment, at: at, value: added})
	return added
}

// overrideValue parses the value; what is no YAML, as {salt}|{id}, is a text.
func (d *decoder) overrideValue(doc *document, value string, column int, path string) *node {
	n := &node{kind: kindText, path: path, text: value, plain: true}
	n.at = place{doc: doc, line: 1, col: column + 1, width: len([]rune(value))}
	file, err := parseYAML(value)
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return n
	}
	b := &builder{doc: doc, src: strings.Split(value, "\n"), shift: column, report: d.report}
	return b.node(file.Docs[0].Body, path, n.at)
}
