package rowkey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// Dim is a dimension as keys see it.
type Dim struct {
	Name string
	Type row.Type
	// Null says what NULL becomes; the zero policy rejects it.
	Null job.NullPolicy
}

// nullPossible says that a NULL can reach a key.
func (d Dim) nullPossible() bool {
	return d.Type.Nullable && (d.Null.Mode == job.NullEmpty || d.Null.Mode == job.NullLiteral)
}

// nullText is what NULL becomes where it is possible.
func (d Dim) nullText() string {
	if d.Null.Mode == job.NullLiteral {
		return d.Null.Literal
	}
	return ""
}

// Config is what a Codec is made from.
type Config struct {
	// Template is the row_key of the job file.
	Template string
	// Salt is nil for a template without {salt}.
	Salt *job.Salt
	// Dims are all dimensions, in the order of [job.Job.Dimensions].
	Dims []Dim
	// Metrics are those that the template may name, to sort by them.
	Metrics []row.Column
	// Levels hold indexes into Dims.
	Levels []job.Level
	// Periods are the periods whose rows go to the same table.
	Periods []job.Period
	// Zone renders DateTime values; nil is UTC.
	Zone *time.Location
}

// Codec writes and reads the row keys of one job. It is immutable and safe for
// concurrent use.
type Codec struct {
	config  Config
	tokens  []token
	dims    []Dim       // those of the config, the business date, and the metrics
	formats []formatter // by dims
	// position[level][dim] is the place of a dimension in the level's order, or -1.
	position [][]int
	// ranks says that the template names a metric.
	ranks bool
	// left tokens are decoded from the left, right ones from the right; at
	// most one is between them.
	left, right int
}

// Compile checks that the template gives distinct keys to distinct rows and
// makes its codec. Its errors have class Usage.
func Compile(c Config) (*Codec, error) {
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	codec := &Codec{config: c}
	if err := codec.checkConfig(); err != nil {
		return nil, err
	}
	parts, err := parse(c.Template)
	if err != nil {
		return nil, err
	}
	codec.dims = append(slices.Clone(c.Dims), Dim{Name: "date", Type: row.Type{Name: "Date32", Base: "Date32", Kind: row.Date}})
	for _, m := range c.Metrics {
		codec.dims = append(codec.dims, Dim{Name: m.Name, Type: m.Type})
	}
	for _, d := range codec.dims {
		codec.formats = append(codec.formats, newFormatter(d.Type, c.Zone))
	}
	codec.fillPositions()
	for _, p := range parts {
		t, err := codec.compilePart(p)
		if err != nil {
			return nil, err
		}
		codec.tokens = append(codec.tokens, t)
	}
	codec.ranks = len(codec.Ranks()) > 0
	if err := codec.checkComplete(); err != nil {
		return nil, err
	}
	return codec, codec.prove()
}

func (c *Codec) checkConfig() error {
	if len(c.config.Levels) == 0 || len(c.config.Periods) == 0 {
		return usage("", "a job needs a level and a period")
	}
	if code, twice := duplicate(levelCodes(c.config.Levels)); twice {
		return usage("give every level its own code", "two levels have the code %q", code)
	}
	if name, twice := duplicate(periodNames(c.config.Periods)); twice {
		return usage("name it once", "the period %s is listed twice", name)
	}
	for _, d := range c.config.Dims {
		if slices.Contains(builtins, d.Name) {
			return usage(fmt.Sprintf("rename it: {name: %s_, expr: %s}", d.Name, d.Name),
				"a dimension cannot be named %s: {%s} is a field of its own in row keys", d.Name, d.Name)
		}
		switch d.Null.Mode {
		case "", job.NullReject, job.NullEmpty, job.NullLiteral:
		default:
			return usage("write reject, empty or literal", "dimension %s: a NULL in a row key cannot be %q", d.Name, d.Null.Mode)
		}
	}
	return c.checkSaltConfig()
}

func (c *Codec) fillPositions() {
	for _, l := range c.config.Levels {
		at := make([]int, len(c.config.Dims))
		for i := range at {
			at[i] = slices.Index(l.Dimensions, i)
		}
		c.position = append(c.position, at)
	}
}

// inEveryLevel says that no level lacks the dimension, inSome that one has it.
func (c *Codec) inEveryLevel(dim int) bool {
	return !slices.ContainsFunc(c.position, func(at []int) bool { return at[dim] < 0 })
}

func (c *Codec) inSome(dim int) bool {
	return slices.ContainsFunc(c.position, func(at []int) bool { return at[dim] >= 0 })
}

// has says that the template has a token of the kind; dim matters for tokDim.
func (c *Codec) has(kind tokenKind, dim int) bool {
	return slices.ContainsFunc(c.tokens, func(t token) bool {
		return t.kind == kind && (kind != tokDim || t.dim == dim)
	})
}

// checkComplete refuses a template that leaves out what tells rows apart.
func (c *Codec) checkComplete() error {
	fail := func(what, remedy string) error { return templateError(c.config.Template, 0, what, remedy) }
	if len(c.config.Levels) > 1 && !c.has(tokLevel, 0) {
		return fail(fmt.Sprintf("%d levels would share keys: {lvl} is missing", len(c.config.Levels)), "put {lvl} into the template, for example after {salt}")
	}
	if len(c.config.Periods) > 1 && !c.has(tokPeriod, 0) {
		return fail(fmt.Sprintf("%d periods would share keys: {tp} is missing", len(c.config.Periods)), "put {tp} into the template")
	}
	for i, d := range c.config.Dims {
		if c.inSome(i) && !c.has(tokDim, i) {
			return fail(fmt.Sprintf("rows that differ in %s would share a key: {%s} is missing", d.Name, d.Name), "put {"+d.Name+"} into the template")
		}
	}
	switch salted := c.salt() != nil; {
	case salted && c.config.Salt == nil:
		return fail("{salt} has no definition", "add salt: {over: [dimension], buckets: 64} under hbase")
	case !salted && c.config.Salt != nil:
		return fail("there is a salt but the template has no {salt}", "begin the template with {salt} or remove the salt")
	}
	for i := range c.tokens {
		t := &c.tokens[i]
		if t.kind != tokHash {
			continue
		}
		for _, d := range t.hash.over {
			if !c.has(tokDim, d) {
				return fail(fmt.Sprintf("%s is over %s, which is not in the key", t.text(), c.dims[d].Name), "a hash can be over dimensions in the template only")
			}
		}
	}
	if len(c.tokens) == 0 {
		return fail("it is empty", "name every dimension in it")
	}
	return nil
}

// HasDate says that keys hold the business date. Without it the table holds
// the latest date only: each run replaces the rows of the one before.
func (c *Codec) HasDate() bool { return c.has(tokDate, 0) }

// Warnings are sentences about what is allowed but may surprise.
func (c *Codec) Warnings() []string {
	var out []string
	if !c.HasDate() {
		out = append(out, "the row key has no {date}: the table holds one business date, and a run for another date writes over its rows")
	}
	out = append(out, c.rankNotes()...)
	if c.config.Salt == nil {
		return out
	}
	return append(out, c.saltNotes()...)
}

// names lists what a field may be called, for messages.
func (c *Codec) names() []string {
	names := slices.Clone(builtins)
	for _, d := range c.config.Dims {
		names = append(names, d.Name)
	}
	for _, m := range c.config.Metrics {
		names = append(names, m.Name)
	}
	return names
}

// describeRow shows a row's dimensions for messages, shortened.
func (c *Codec) describeRow(level int, dims []row.Value) string {
	var b strings.Builder
	for i, d := range c.config.Levels[level].Dimensions {
		if i > 0 {
			b.WriteString(", ")
		}
		text := "NULL"
		if i < len(dims) && !dims[i].Null {
			text = shorten(string(c.formats[d].text(nil, &dims[i])))
		}
		fmt.Fprintf(&b, "%s=%s", c.config.Dims[d].Name, text)
	}
	return b.String()
}

// shorten quotes a value for a message.
func shorten(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}
