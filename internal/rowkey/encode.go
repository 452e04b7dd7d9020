package rowkey

import (
	"fmt"
	"math"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// MaxKey is the length of the longest row key that HBase takes, in bytes.
const MaxKey = math.MaxInt16

const (
	plainNaN = 0x7ff8000000000000
	signBit  = 1 << 63
)

// span is where a dimension stands in a key.
type span struct{ from, to int }

// AppendKey appends the key of a row of the unit to dst. values are the row's
// dimensions in the order of the unit's level and then its metrics, which may be
// left out where the template names none ([Codec.Ranks]); they are not kept.
// Errors have class Source and name the row or the dimension; dst is then worthless.
func (c *Codec) AppendKey(dst []byte, u job.Unit, values []row.Value) ([]byte, error) {
	dims, metrics, err := c.split(u, values)
	if err != nil {
		return nil, err
	}
	var few [8]span
	spans := few[:]
	if len(c.config.Dims) > len(few) {
		spans = make([]span, len(c.config.Dims))
	}
	var fewHashes [4]int
	start, hashes := len(dst), fewHashes[:0]
	for i := range c.tokens {
		t := &c.tokens[i]
		from := len(dst)
		switch t.kind {
		case tokLiteral:
			dst = append(dst, t.literal...)
		case tokHash:
			hashes = append(hashes, from)
			dst = appendZeros(dst, t.width, 0)
		case tokDim:
			dst, err = c.appendDimAt(dst, t, u.Level, dims)
			if t.firstOfDim {
				spans[t.dim] = span{from, len(dst)}
			}
		case tokMetric:
			dst, err = c.appendDim(dst, t, &metrics[t.dim-c.firstMetric()])
		default:
			dst, err = c.appendUnit(dst, t, u)
		}
		if err != nil {
			return nil, err
		}
	}
	c.putHashes(dst, hashes, spans)
	if n := len(dst) - start; n == 0 || n > MaxKey {
		return nil, badValue("shorten the dimensions in their expressions, or use fixed widths",
			"the row key of %s is %d bytes long; HBase takes 1 to %d", c.describeRow(u.Level, dims), n, MaxKey)
	}
	return dst, nil
}

// split takes the values of a row apart.
func (c *Codec) split(u job.Unit, values []row.Value) (dims, metrics []row.Value, err error) {
	if u.Level < 0 || u.Level >= len(c.config.Levels) {
		return nil, nil, fmt.Errorf("a row of level number %d", u.Level)
	}
	n := len(c.config.Levels[u.Level].Dimensions)
	switch {
	case len(values) >= n && !c.ranks:
		return values[:n], nil, nil
	case len(values) == n+len(c.config.Metrics):
		return values[:n], values[n:], nil
	}
	return nil, nil, fmt.Errorf("a row of %d values for level number %d, which has %d dimensions and %d metrics", len(values), u.Level, n, len(c.config.Metrics))
}

// appendUnit writes what is the same for all rows of a unit.
func (c *Codec) appendUnit(dst []byte, t *token, u job.Unit) ([]byte, error) {
	switch t.kind {
	case tokLevel:
		return append(dst, c.config.Levels[u.Level].Code...), nil
	case tokPeriod:
		for _, p := range c.config.Periods {
			if p == u.Period.Period {
				return append(dst, p...), nil
			}
		}
		return nil, fmt.Errorf("the period %q is not one of the job", u.Period.Period)
	}
	y, m, d := u.Date.Date()
	if y < 0 || y > 9999 {
		return nil, fmt.Errorf("the business date %v is not in years 0 to 9999", u.Date)
	}
	if t.form == formPattern { // the usual one has a short way
		from := len(dst)
		dst = appendPattern(dst, t.pattern, y, m, d)
		t.mod.apply(dst[from:])
		return dst, nil
	}
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsADay
	return c.appendValue(dst, t, &row.Value{Kind: row.Date, Num: uint64(days)})
}

// appendDimAt writes a dimension's token for a row of a level.
func (c *Codec) appendDimAt(dst []byte, t *token, level int, dims []row.Value) ([]byte, error) {
	at := c.position[level][t.dim]
	if at >= 0 {
		return c.appendDim(dst, t, &dims[at])
	}
	zero := byte(0)
	if t.form == formPadded || t.form == formPattern {
		zero = '0'
	}
	from := len(dst)
	dst = appendZeros(dst, t.width, zero)
	t.mod.apply(dst[from:])
	return dst, nil
}

func appendZeros(dst []byte, n int, zero byte) []byte {
	for range n {
		dst = append(dst, zero)
	}
	return dst
}

// appendDim writes a value, NULL by its policy, in a token's form.
func (c *Codec) appendDim(dst []byte, t *token, v *row.Value) ([]byte, error) {
	d := &c.dims[t.dim]
	if v.Null {
		if !d.nullPossible() {
			return nil, badValue(fmt.Sprintf("give the dimension a policy (null: literal with a text, or null: empty), or the expression ifNull(%s, …)", d.Name),
				"the %s is NULL in a row, and a NULL has no form in the row key", c.subject(t))
		}
		return append(dst, d.nullText()...), nil
	}
	if v.Kind != d.Type.Kind {
		return nil, fmt.Errorf("%s: a value of kind %v in a column of type %s", c.subject(t), v.Kind, d.Type.Name)
	}
	from := len(dst)
	dst, err := c.appendValue(dst, t, v)
	if err != nil {
		return nil, err
	}
	if d.nullPossible() && string(dst[from:]) == d.nullText() {
		return nil, badValue("choose a literal that no value has, for example \\N with {"+d.Name+":esc}",
			"a value of dimension %s is %q, which is how the row key writes NULL", d.Name, d.nullText())
	}
	return dst, nil
}

// appendValue writes a value that is not NULL.
func (c *Codec) appendValue(dst []byte, t *token, v *row.Value) ([]byte, error) {
	from := len(dst)
	dst, err := c.appendForm(dst, t, v)
	if err != nil {
		return nil, err
	}
	t.mod.apply(dst[from:])
	return dst, nil
}

// appendForm writes a value in a token's form, without its modifier.
func (c *Codec) appendForm(dst []byte, t *token, v *row.Value) ([]byte, error) {
	d := &c.dims[t.dim]
	if v.Kind == row.Float && math.IsNaN(math.Float64frombits(v.Num)) && v.Num&^signBit != plainNaN {
		return nil, badValue("make one of them, for example if(isNaN(x), nan, x)", "the %s holds a NaN with the payload %x", c.subject(t), v.Num)
	}
	switch t.form {
	case formBE, formBESigned:
		return c.appendBigEndian(dst, t, v)
	case formPadded:
		return c.appendPadded(dst, t, v)
	case formFloat:
		return appendFloat(dst, t, v), nil
	case formPhoenix:
		out, ok := t.phoenix.append(dst, &d.Type, v)
		if !ok || t.phoenix.overflowsKey(v) {
			return nil, badValue("choose another form, or change the value in the dimension's expression",
				"the value %s of %s does not fit %s", shorten(string(c.formats[t.dim].text(nil, v))), c.subject(t), t.text())
		}
		return out, nil
	case formPattern:
		if days := int64(v.Num); days < firstDay || days > lastDay {
			return nil, badValue("", "the date of %s, %d days after 1970-01-01, is not in years 0 to 9999", c.subject(t), days)
		}
		year, month, day := time.Unix(int64(v.Num)*secondsADay, 0).UTC().Date()
		return appendPattern(dst, t.pattern, year, month, day), nil
	}
	return c.appendText(dst, t, v)
}

func (c *Codec) appendText(dst []byte, t *token, v *row.Value) ([]byte, error) {
	d := &c.dims[t.dim]
	from := len(dst)
	if v.Kind == row.Float && v.Num == plainNaN|signBit {
		dst = append(dst, '-')
	}
	dst = c.formats[t.dim].text(dst, v)
	if v.Kind == row.String && d.Type.Length > 0 && len(dst)-from != d.Type.Length {
		return nil, badValue("", "dimension %s: %s is not %d bytes long as its type %s says", d.Name, shorten(v.Str), d.Type.Length, d.Type.Name)
	}
	if t.form == formEsc {
		return escape(dst, from), nil
	}
	if t.checked {
		return dst, t.checkAlphabet(d, dst[from:])
	}
	return dst, nil
}

// checkAlphabet holds values of types such as UUID to what the proof took for
// granted.
func (t *token) checkAlphabet(d *Dim, text []byte) error {
	if width := fixedText(d.Type); width > 0 && len(text) != width {
		return badValue("", "dimension %s: %s is not the text of a %s", d.Name, shorten(string(text)), d.Type.Name)
	}
	for i, b := range text {
		if i == 0 && !t.begin.has(b) || i > 0 && !t.follow.has(b) {
			return badValue("", "dimension %s: %q is not the text of a %s", d.Name, text, d.Type.Name)
		}
	}
	return nil
}

// escape percent-encodes dst[from:] in place.
func escape(dst []byte, from int) []byte {
	extra := 0
	for _, b := range dst[from:] {
		if !escapeFree.has(b) {
			extra += 2
		}
	}
	if extra == 0 {
		return dst
	}
	end := len(dst)
	dst = appendZeros(dst, extra, 0)
	for r, w := end-1, len(dst)-1; r >= from; r-- {
		b := dst[r]
		if escapeFree.has(b) {
			dst[w] = b
			w--
			continue
		}
		dst[w-2], dst[w-1], dst[w] = '%', hexUpper[b>>4], hexUpper[b&15]
		w -= 3
	}
	return dst
}

var escapeFree = setOf(unreserved)
