package rowkey

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// Key is a decoded row key.
type Key struct {
	// Level is the index of the row's level.
	Level int
	// Period is the row's period.
	Period job.Period
	// Date is the business date (midnight UTC) if HasDate is set: the template may have none.
	Date    time.Time
	HasDate bool
	// Dims are the row's dimensions in the level's order. They alias nothing.
	Dims []row.Value
	// Metrics has a value for each metric of the job, of which those that the
	// template names are set; nil if it names none.
	Metrics []row.Value
}

// Decode reads a key written by AppendKey. Bytes that AppendKey would not have
// written, a wrong salt included, are an error.
func (c *Codec) Decode(key []byte) (Key, error) {
	k, err := c.decode(key)
	if err != nil {
		return Key{}, fmt.Errorf("row key %q: %w (%q)", key, err, c.config.Template)
	}
	return k, nil
}

func (c *Codec) decode(key []byte) (Key, error) {
	texts, err := c.cut(key)
	if err != nil {
		return Key{}, err
	}
	k := Key{Period: c.config.Periods[0]}
	for i := range c.tokens {
		if err := c.readToken(&k, &c.tokens[i], texts[i]); err != nil {
			return Key{}, err
		}
	}
	if err := c.readDims(&k, texts); err != nil {
		return Key{}, err
	}
	unit := job.Unit{Level: k.Level, Period: job.Span{Period: k.Period}, Date: k.Date}
	again, err := c.AppendKey(nil, unit, slices.Concat(k.Dims, k.Metrics))
	if err != nil || !bytes.Equal(again, key) {
		return Key{}, errNotAKey
	}
	return k, nil
}

// cut gives each token its bytes, by the rules of the proof.
func (c *Codec) cut(key []byte) ([][]byte, error) {
	n := len(c.tokens)
	texts := make([][]byte, n)
	rest := key
	for i := range c.left {
		size := c.munch(&c.tokens[i], rest, false)
		if size < 0 || size > len(rest) {
			return nil, errNotAKey
		}
		texts[i], rest = rest[:size], rest[size:]
	}
	for i := n - 1; i >= n-c.right; i-- {
		size := c.munch(&c.tokens[i], rest, true)
		if size < 0 || size > len(rest) {
			return nil, errNotAKey
		}
		texts[i], rest = rest[len(rest)-size:], rest[:len(rest)-size]
	}
	if c.left+c.right < n {
		texts[c.left], rest = rest, nil
	}
	if len(rest) > 0 {
		return nil, errNotAKey
	}
	return texts, nil
}

// munch is the number of bytes of a token at the beginning of rest, or at its
// end; -1 if there is none.
func (c *Codec) munch(t *token, rest []byte, fromEnd bool) int {
	switch {
	case t.width > 0:
		return t.width
	case fromEnd && t.set != nil && t.suffixFree:
		return longest(t.set, func(s string) bool { return bytes.HasSuffix(rest, []byte(s)) })
	case !fromEnd && t.set != nil && t.prefixFree:
		return longest(t.set, func(s string) bool { return bytes.HasPrefix(rest, []byte(s)) })
	case fromEnd:
		allowed, n := t.first.or(t.rest), 0
		for n < len(rest) && allowed.has(rest[len(rest)-1-n]) {
			n++
		}
		return n
	}
	if len(rest) == 0 || !t.first.has(rest[0]) {
		return 0
	}
	n := 1
	for n < len(rest) && t.rest.has(rest[n]) {
		n++
	}
	return n
}

func longest(set []string, fits func(string) bool) int {
	best := -1
	for _, s := range set {
		if len(s) > best && fits(s) {
			best = len(s)
		}
	}
	return best
}

// readToken reads what is not a dimension.
func (c *Codec) readToken(k *Key, t *token, text []byte) error {
	switch t.kind {
	case tokLevel:
		for i, s := range t.set {
			if s == string(text) {
				k.Level = i
				return nil
			}
		}
		return errNotAKey
	case tokPeriod:
		k.Period = job.Period(text)
	case tokDate:
		v, err := c.parseDim(t, text)
		if days := int64(v.Num); err != nil || days < firstDay || days > lastDay {
			return errNotAKey
		}
		k.Date, k.HasDate = time.Unix(int64(v.Num)*secondsADay, 0).UTC(), true
	}
	return nil
}

// readDims reads the dimensions of the level that was found, and the metrics.
func (c *Codec) readDims(k *Key, texts [][]byte) error {
	k.Dims = make([]row.Value, len(c.config.Levels[k.Level].Dimensions))
	if c.ranks {
		k.Metrics = make([]row.Value, len(c.config.Metrics))
	}
	for i := range c.tokens {
		t := &c.tokens[i]
		var into *row.Value
		switch {
		case t.kind == tokDim && c.position[k.Level][t.dim] >= 0:
			into = &k.Dims[c.position[k.Level][t.dim]]
		case t.kind == tokMetric:
			into = &k.Metrics[t.dim-c.firstMetric()]
		default:
			continue
		}
		var err error
		if *into, err = c.parseDim(t, texts[i]); err != nil {
			return fmt.Errorf("%s: %w", t.text(), err)
		}
	}
	return nil
}

// parseDim reads the bytes of a dimension's token.
func (c *Codec) parseDim(t *token, text []byte) (row.Value, error) {
	d := &c.dims[t.dim]
	if d.nullPossible() && string(text) == d.nullText() {
		return row.Value{Kind: d.Type.Kind, Null: true}, nil
	}
	if t.mod != asIs {
		text = bytes.Clone(text)
		t.mod.apply(text)
	}
	return c.parseForm(t, d, text)
}

// parseForm reads the bytes of a form, without its modifier.
func (c *Codec) parseForm(t *token, d *Dim, text []byte) (row.Value, error) {
	switch t.form {
	case formBE, formBESigned:
		return parseBigEndian(t, d, text)
	case formPadded:
		return parsePadded(d, text)
	case formFloat:
		return parseFloat(t, text)
	case formPhoenix:
		return t.phoenix.parse(&d.Type, text)
	case formPattern:
		days, err := parsePattern(t.pattern, text)
		return row.Value{Kind: row.Date, Num: uint64(days)}, err
	case formEsc:
		plain, err := unescape(text)
		if err != nil {
			return row.Value{}, err
		}
		return ParseText(d.Type, plain, c.config.Zone)
	}
	return ParseText(d.Type, string(text), c.config.Zone)
}

func unescape(text []byte) (string, error) {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out = append(out, text[i])
			continue
		}
		if i+3 > len(text) {
			return "", errNotAKey
		}
		n, err := strconv.ParseUint(string(text[i+1:i+3]), 16, 8)
		if err != nil {
			return "", errNotAKey
		}
		out = append(out, byte(n))
		i += 2
	}
	return string(out), nil
}
