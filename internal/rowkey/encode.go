package rowkey

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"

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

// AppendKey appends the key of a row of the unit to dst. dims are the row's
// dimensions in the order of the unit's level; they are not kept. Errors have
// class Source and name the row or the dimension; dst is then worthless.
func (c *Codec) AppendKey(dst []byte, u job.Unit, dims []row.Value) ([]byte, error) {
	if u.Level < 0 || u.Level >= len(c.config.Levels) || len(dims) != len(c.config.Levels[u.Level].Dimensions) {
		return nil, fmt.Errorf("a row of %d dimensions for level number %d", len(dims), u.Level)
	}
	var few [8]span
	spans := few[:]
	if len(c.config.Dims) > len(few) {
		spans = make([]span, len(c.config.Dims))
	}
	start, salt := len(dst), -1
	for i := range c.tokens {
		t := &c.tokens[i]
		from := len(dst)
		var err error
		switch t.kind {
		case tokLiteral:
			dst = append(dst, t.literal...)
		case tokSalt:
			salt = from
			dst = appendZeros(dst, t.width, 0)
		case tokDim:
			dst, err = c.appendDimAt(dst, t, u.Level, dims)
			if t.firstOfDim {
				spans[t.dim] = span{from, len(dst)}
			}
		default:
			dst, err = c.appendUnit(dst, t, u)
		}
		if err != nil {
			return nil, err
		}
	}
	if salt >= 0 {
		c.putSalt(dst, salt, spans)
	}
	if n := len(dst) - start; n == 0 || n > MaxKey {
		return nil, badValue("shorten the dimensions in their expressions, or use fixed widths",
			"the row key of %s is %d bytes long; HBase takes 1 to %d", c.describeRow(u.Level, dims), n, MaxKey)
	}
	return dst, nil
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
	if y := u.Date.Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("the business date %v is not in years 0 to 9999", u.Date)
	}
	return u.Date.AppendFormat(dst, c.dateForm), nil
}

// appendDimAt writes a dimension's token for a row of a level.
func (c *Codec) appendDimAt(dst []byte, t *token, level int, dims []row.Value) ([]byte, error) {
	at := c.position[level][t.dim]
	if at >= 0 {
		return c.appendDim(dst, t, &dims[at])
	}
	if t.form == formPadded {
		return appendZeros(dst, t.width, '0'), nil
	}
	return appendZeros(dst, t.width, 0), nil
}

func appendZeros(dst []byte, n int, zero byte) []byte {
	for range n {
		dst = append(dst, zero)
	}
	return dst
}

// appendDim writes a value, NULL by its policy, in a token's form.
func (c *Codec) appendDim(dst []byte, t *token, v *row.Value) ([]byte, error) {
	d := &c.config.Dims[t.dim]
	if v.Null {
		if !d.nullPossible() {
			return nil, badValue(fmt.Sprintf("give the dimension a policy (null: literal with a text, or null: empty), or the expression ifNull(%s, …)", d.Name),
				"the dimension %s is NULL in a row, and a NULL has no form in the row key", d.Name)
		}
		return append(dst, d.nullText()...), nil
	}
	if v.Kind != d.Type.Kind {
		return nil, fmt.Errorf("dimension %s: a value of kind %v in a column of type %s", d.Name, v.Kind, d.Type.Name)
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

func (c *Codec) appendValue(dst []byte, t *token, v *row.Value) ([]byte, error) {
	switch t.form {
	case formBE, formBESigned:
		return c.appendBigEndian(dst, t, v)
	case formPadded:
		return c.appendPadded(dst, t, v)
	}
	d := &c.config.Dims[t.dim]
	if v.Kind == row.Float && math.IsNaN(math.Float64frombits(v.Num)) {
		switch v.Num {
		case plainNaN:
		case plainNaN | signBit:
			dst = append(dst, '-')
		default:
			return nil, badValue("make one of them, for example if(isNaN(x), nan, x)", "the dimension %s holds a NaN with the payload %x", d.Name, v.Num)
		}
	}
	from := len(dst)
	dst = c.formats[t.dim].text(dst, v)
	if v.Kind == row.String && t.width > 0 && len(dst)-from != t.width {
		return nil, badValue("", "dimension %s: %s is not %d bytes long as its type %s says", d.Name, shorten(v.Str), t.width, d.Type.Name)
	}
	if t.form == formEsc {
		return escape(dst, from), nil
	}
	if v.Kind == row.String && t.rest != allBytes() {
		return dst, c.checkAlphabet(t, dst[from:])
	}
	return dst, nil
}

// checkAlphabet holds values of types such as UUID to what the proof took for
// granted.
func (c *Codec) checkAlphabet(t *token, text []byte) error {
	for i, b := range text {
		if i == 0 && !t.first.has(b) || i > 0 && !t.rest.has(b) {
			return badValue("", "dimension %s: %q is not the text of a %s", c.config.Dims[t.dim].Name, text, c.config.Dims[t.dim].Type.Name)
		}
	}
	return nil
}

func (c *Codec) appendBigEndian(dst []byte, t *token, v *row.Value) ([]byte, error) {
	n := v.Num
	fits := true
	switch {
	case v.Kind == row.UInt && t.form == formBESigned:
		fits = n <= math.MaxInt64 && (t.width == 8 || n <= math.MaxInt32)
	case v.Kind == row.UInt:
		fits = t.width == 8 || n <= math.MaxUint32
	case t.width == 4:
		fits = int64(n) == int64(int32(n))
	}
	if !fits {
		return nil, badValue("use the text form or be8", "the value %s of dimension %s does not fit %s", c.formats[t.dim].text(nil, v), t.field, t.text())
	}
	if t.width == 4 {
		if t.form == formBESigned {
			n ^= 1 << 31
		}
		return binary.BigEndian.AppendUint32(dst, uint32(n)), nil
	}
	if t.form == formBESigned {
		n ^= signBit
	}
	return binary.BigEndian.AppendUint64(dst, n), nil
}

func (c *Codec) appendPadded(dst []byte, t *token, v *row.Value) ([]byte, error) {
	var buf [20]byte
	number := c.formats[t.dim].text(buf[:0], v)
	if number[0] == '-' || len(number) > t.width {
		return nil, badValue("use a wider field, or {"+t.field+":be8s} for values that may be negative",
			"the value %s of dimension %s does not fit %s", number, t.field, t.text())
	}
	return append(appendZeros(dst, t.width-len(number), '0'), number...), nil
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

// putSalt writes the salt of a finished key at its place.
func (c *Codec) putSalt(key []byte, at int, spans []span) {
	over := c.config.Salt.Over
	first := spans[over[0]]
	input := key[first.from:first.to]
	if len(over) > 1 {
		var buf [256]byte
		joined := append(buf[:0], input...)
		for _, d := range over[1:] {
			joined = append(joined, 0)
			joined = append(joined, key[spans[d].from:spans[d].to]...)
		}
		input = joined
	}
	sum := md5.Sum(input)
	c.writeSalt(key[at:at+c.saltWidth], binary.BigEndian.Uint64(sum[:8])%uint64(c.config.Salt.Buckets))
}

func (c *Codec) writeSalt(dst []byte, bucket uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = hexLower[bucket&15]
		bucket >>= 4
	}
}

// Splits gives the keys at which the regions of a new table begin, after the
// first: one region a salt bucket, or as many of equal width as regions says,
// if that is fewer. regions ≤ 0 means no maximum. It is empty when the key
// does not begin with the salt.
func (c *Codec) Splits(regions int) [][]byte {
	prefix, ok := c.saltPrefix()
	if !ok {
		return nil
	}
	buckets := c.config.Salt.Buckets
	if regions <= 0 || regions > buckets {
		regions = buckets
	}
	var out [][]byte
	for i := 1; i < regions; i++ {
		key := make([]byte, len(prefix)+c.saltWidth)
		copy(key, prefix)
		c.writeSalt(key[len(prefix):], uint64(i)*uint64(buckets)/uint64(regions))
		out = append(out, key)
	}
	return out
}

// saltPrefix is the literal in front of a salt that begins the key.
func (c *Codec) saltPrefix() (string, bool) {
	switch {
	case c.tokens[0].kind == tokSalt:
		return "", true
	case len(c.tokens) > 1 && c.tokens[0].kind == tokLiteral && c.tokens[1].kind == tokSalt:
		return c.tokens[0].literal, true
	}
	return "", false
}
