package rowkey

import (
	"fmt"
	"slices"
)

// The proof. A key is decoded from the left as long as the end of each token
// is known: it has a fixed width, or one of a prefix-free set of texts, or no
// byte that can follow it can be in it, so that it is the longest run of its
// alphabet. What is left is decoded from the right by the same rule. If one
// token stays in the middle it is what remains. So the tokens' texts follow
// from the key; and each text gives one value, since a dimension's text is
// injective and a NULL's text is refused as a value's.
func (c *Codec) prove() error {
	n := len(c.tokens)
	for c.left < n && c.endKnown(c.left) {
		c.left++
	}
	for c.right < n-c.left && c.beginKnown(n-1-c.right) {
		c.right++
	}
	if n-c.left-c.right <= 1 {
		return nil
	}
	a, b := &c.tokens[c.left], &c.tokens[n-1-c.right]
	what := fmt.Sprintf("it cannot be told where %s ends and %s begins", a.text(), b.text())
	if example := c.collision(); example != "" {
		what += ": " + example
	}
	return templateError(c.config.Template, a.column, what, c.remedy(a, b))
}

// endKnown says whether the end of token i follows from the bytes from its beginning on.
func (c *Codec) endKnown(i int) bool {
	t := &c.tokens[i]
	if t.width > 0 || t.set != nil && t.prefixFree {
		return true
	}
	next := c.firstAfter(i)
	return !t.rest.meets(next) && !(t.mayBeEmpty && t.first.meets(next))
}

// beginKnown is endKnown from the other side.
func (c *Codec) beginKnown(i int) bool {
	t := &c.tokens[i]
	if t.width > 0 || t.set != nil && t.suffixFree {
		return true
	}
	return !t.first.or(t.rest).meets(c.lastBefore(i))
}

// firstAfter are the bytes that can follow token i directly.
func (c *Codec) firstAfter(i int) byteSet {
	var b byteSet
	for _, t := range c.tokens[i+1:] {
		b = b.or(t.first)
		if !t.mayBeEmpty {
			break
		}
	}
	return b
}

// lastBefore are the bytes that can precede token i directly.
func (c *Codec) lastBefore(i int) byteSet {
	var b byteSet
	for i--; i >= 0; i-- {
		t := &c.tokens[i]
		if t.kind == tokLiteral {
			return b.or(setOf(t.literal[len(t.literal)-1:]))
		}
		b = b.or(t.first).or(t.rest)
		if !t.mayBeEmpty {
			break
		}
	}
	return b
}

// remedy proposes a change of one of two tokens that cannot be told apart.
func (c *Codec) remedy(a, b *token) string {
	for _, t := range []*token{a, b} {
		if t.kind != tokDim || t.form != formText {
			continue
		}
		if c.dims[t.dim].Type.Kind.String() == "string" {
			return fmt.Sprintf("write {%s:esc} and put a separator such as | after it, or use fixed widths", t.field)
		}
		return fmt.Sprintf("put a separator such as | after %s, or use a fixed width such as {%s:be8s}", a.text(), t.field)
	}
	return "put a separator such as | between them"
}

// pool are texts from which examples of collisions are tried.
var pool = []string{"a", "b", "1", "2", "", "11", "true", "1.0", "-1"}

// collision shows two different rows with the same key: the first token's
// text followed by what is between it and the second, M, so that x + M + yMz
// = xMy + M + z. It is empty when the pool holds no example.
func (c *Codec) collision() string {
	i, j := c.left, len(c.tokens)-1-c.right
	var between []byte
	for _, t := range c.tokens[i+1 : j] {
		text := c.sample(&t)
		if text == "" && !t.mayBeEmpty {
			return ""
		}
		between = append(between, text...)
	}
	m := string(between)
	a, b := &c.tokens[i], &c.tokens[j]
	if c.repeated(a) || c.repeated(b) || a.kind == tokMetric && b.kind == tokMetric {
		return "" // its other field would differ, or only the order
	}
	texts := pool
	for _, t := range []*token{a, b} {
		texts = append(slices.Clip(texts), t.set...)
	}
	for _, x := range texts {
		for _, y := range texts {
			for _, z := range texts {
				if y+m == "" || !c.accepts(a, x) || !c.accepts(a, x+m+y) || !c.accepts(b, y+m+z) || !c.accepts(b, z) {
					continue
				}
				return fmt.Sprintf("%s=%q with %s=%q and %s=%q with %s=%q give the same key",
					a.field, x, b.field, y+m+z, a.field, x+m+y, b.field, z)
			}
		}
	}
	return ""
}

// repeated says that a dimension has several fields.
func (c *Codec) repeated(t *token) bool {
	n := 0
	for i := range c.tokens {
		if t.kind == tokDim && c.tokens[i].kind == tokDim && c.tokens[i].dim == t.dim {
			n++
		}
	}
	return n > 1
}

// sample is a text that a token can write.
func (c *Codec) sample(t *token) string {
	if t.kind == tokLiteral {
		return t.literal
	}
	for _, s := range append(pool, t.set...) {
		if c.accepts(t, s) {
			return s
		}
	}
	return string(make([]byte, t.width))
}

// accepts says whether some row makes a token write the text.
func (c *Codec) accepts(t *token, text string) bool {
	if t.kind != tokDim && t.kind != tokMetric {
		return slices.Contains(t.set, text)
	}
	v, err := c.parseDim(t, []byte(text))
	if err != nil || v.Null {
		return false
	}
	out, err := c.appendDim(nil, t, &v)
	return err == nil && string(out) == text
}
