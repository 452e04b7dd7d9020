package rowkey

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// MaxRanges bounds the prefixes of [Ranges]: one for each value of a salt.
const MaxRanges = 1024

// Ranges are the parts of a table that hold the keys of a unit.
type Ranges struct {
	// Prefixes begin the keys: one, or one for each salt.
	Prefixes [][]byte
	// Skip is the number of bytes at a key's beginning that differ between the
	// prefixes: the order of rows whatever their salt is that of the keys
	// without them.
	Skip int
	// Unmerged says that the salt has more than [MaxRanges] values: rows come
	// in the order of the whole keys.
	Unmerged bool
}

// Ranges gives the longest prefixes of the keys of a unit's rows that have the
// given dimensions: those of the unit's level, in its order, nil where any value
// will do. A key with such a prefix may be another unit's or have other values
// still: decode it. A dimension that stands behind one that is not given, or
// behind a metric, is an error of class Usage.
func (c *Codec) Ranges(u job.Unit, given []*row.Value) (Ranges, error) {
	r, end, err := c.leading(u, given)
	if err != nil {
		return Ranges{}, err
	}
	for at, v := range given {
		dim := c.config.Levels[u.Level].Dimensions[at]
		if v != nil && !slices.ContainsFunc(c.tokens[:end], func(t token) bool { return t.kind == tokDim && t.dim == dim }) {
			return Ranges{}, c.notLeading(u, dim, end, given)
		}
	}
	return r, nil
}

// AppendLeading appends what of a row's key follows from its dimensions: all up
// to the first metric. Of a salt that follows from a metric, too, it takes the nth
// value, again and again.
func (c *Codec) AppendLeading(dst []byte, u job.Unit, dims []row.Value, nth int) ([]byte, error) {
	if !c.ranks {
		return c.AppendKey(dst, u, dims)
	}
	given := make([]*row.Value, len(dims))
	for i := range dims {
		given[i] = &dims[i]
	}
	r, _, err := c.leading(u, given)
	if err != nil {
		return nil, err
	}
	return append(dst, r.Prefixes[nth%len(r.Prefixes)]...), nil
}

// leading gives the longest prefixes, and the token that ends them.
func (c *Codec) leading(u job.Unit, given []*row.Value) (r Ranges, end int, err error) {
	r.Prefixes = [][]byte{nil}
	for end = range c.tokens {
		more, err := c.extend(&r, &c.tokens[end], u, given)
		if err != nil || !more {
			return r, end, err
		}
	}
	return r, len(c.tokens), nil
}

// extend adds the bytes of a token to the prefixes, if they are known; a salt that
// is not makes more of them. It tells whether the next token can follow.
func (c *Codec) extend(r *Ranges, t *token, u job.Unit, given []*row.Value) (more bool, err error) {
	var add []byte
	switch t.kind {
	case tokLiteral:
		add = []byte(t.literal)
	case tokMetric:
		return false, nil
	case tokHash:
		if known, err := c.hashOf(t, u, given); known != nil || err != nil {
			add = known
			break
		}
		return c.fanOut(r, t), nil
	case tokDim:
		add, err = c.knownDim(t, u, given)
		if add == nil && err == nil {
			return false, nil
		}
	default:
		add, err = c.appendUnit(nil, t, u)
	}
	if err != nil {
		return false, err
	}
	for i := range r.Prefixes {
		r.Prefixes[i] = append(r.Prefixes[i], add...)
	}
	return true, nil
}

// knownDim is a dimension's bytes, not nil, if it is given or the level has none.
func (c *Codec) knownDim(t *token, u job.Unit, given []*row.Value) ([]byte, error) {
	at := c.position[u.Level][t.dim]
	if at >= 0 && given[at] == nil {
		return nil, nil
	}
	if at >= 0 {
		return c.appendDim([]byte{}, t, given[at])
	}
	return c.appendDimAt([]byte{}, t, u.Level, nil)
}

// hashOf is a hash's bytes, if all that it is over is given, else nil.
func (c *Codec) hashOf(t *token, u job.Unit, given []*row.Value) ([]byte, error) {
	if t.hash.function == job.SaltPhoenix {
		return nil, nil // over all of the key
	}
	var input []byte
	for i, d := range t.hash.over {
		if i > 0 {
			input = append(input, 0)
		}
		first := slices.IndexFunc(c.tokens, func(o token) bool { return o.kind == tokDim && o.dim == d && o.firstOfDim })
		text, err := c.knownDim(&c.tokens[first], u, given)
		if text == nil || err != nil {
			return nil, err
		}
		input = append(input, text...)
	}
	out := make([]byte, t.width)
	t.hash.write(out, input)
	return out, nil
}

// fanOut makes a prefix for each value of the salt, and tells whether the next
// token can follow.
func (c *Codec) fanOut(r *Ranges, t *token) bool {
	values, width := t.hash.leading()
	if t.field != "salt" {
		return false
	}
	if values > MaxRanges {
		r.Unmerged = true
		return false
	}
	before := r.Prefixes[0]
	r.Prefixes = make([][]byte, values)
	for i := range r.Prefixes {
		r.Prefixes[i] = append(bytes.Clone(before), make([]byte, width)...)
		writeNumber(r.Prefixes[i][len(before):], uint64(i), t.hash.binary)
	}
	r.Skip = len(before) + width
	return true
}

// notLeading says why a dimension cannot be a part of a prefix that ends at a token.
func (c *Codec) notLeading(u job.Unit, dim, end int, given []*row.Value) error {
	name, stop := c.config.Dims[dim].Name, &c.tokens[end]
	switch stop.kind {
	case tokMetric:
		return usage("leave "+name+" out", "%s stands behind the metric %s in the row key %q: rows with it are not side by side", name, stop.field, c.config.Template)
	case tokDim:
		return usage("give "+stop.field+", too, or leave "+name+" out", "%s stands behind %s in the row key %q, which is not given: rows with it are not side by side", name, stop.field, c.config.Template)
	}
	var missing []string
	for _, d := range stop.hash.over {
		if at := c.position[u.Level][d]; at >= 0 && given[at] == nil {
			missing = append(missing, c.config.Dims[d].Name)
		}
	}
	remedy := "leave " + name + " out"
	if missing != nil {
		remedy = "give " + strings.Join(missing, ", ") + ", too, or " + remedy
	}
	return usage(remedy, "%s stands behind %s in the row key %q, which is not known: rows with it are not side by side", name, stop.text(), c.config.Template)
}
