package rowkey

import (
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// tokenKind is what a token of a compiled template writes.
type tokenKind uint8

const (
	tokLiteral tokenKind = iota
	tokHash
	tokLevel
	tokPeriod
	tokDate
	tokDim
	tokMetric
)

// form is how a dimension is written.
type form uint8

const (
	formText form = iota
	formEsc
	formPadded
	formBE
	formBESigned
	formFloat
	formPattern
	formPhoenix
)

// modifier changes the bytes of a form; each is its own inverse.
type modifier uint8

const (
	asIs modifier = iota
	// descending inverts every byte, as Phoenix and OrderedBytes do.
	descending
	// reversed puts the last byte first.
	reversed
)

// apply changes bytes in place.
func (m modifier) apply(b []byte) {
	switch m {
	case descending:
		for i := range b {
			b[i] = ^b[i]
		}
	case reversed:
		slices.Reverse(b)
	}
}

// token is one part of a compiled template with what the proof needs to know
// about the bytes it can write.
type token struct {
	part
	kind tokenKind
	// dim is an index into the codec's dims.
	dim  int
	form form
	mod  modifier
	// pattern is that of formPattern.
	pattern string
	// phoenix is the type of formPhoenix.
	phoenix phoenixType
	// hash is what tokHash writes.
	hash *hash
	// firstOfDim marks the first field of its dimension: the salt is over it.
	firstOfDim bool
	// width is the number of bytes of a token that always has as many, or 0.
	width int
	// first are the bytes it can begin with, rest those that can follow.
	first, rest byteSet
	// begin and follow are first and rest of the values that are checked: texts
	// of types such as UUID.
	begin, follow byteSet
	checked       bool
	// mayBeEmpty says that it can write nothing.
	mayBeEmpty bool
	// set holds all texts of a token with few known ones, else nil.
	set []string
	// prefixFree and suffixFree say that no text of set begins, ends another.
	prefixFree, suffixFree bool
}

func literalToken(p part) token {
	return token{part: p, kind: tokLiteral, width: len(p.literal), first: setOf(p.literal[:1]), rest: setOf(p.literal[1:])}
}

// setToken writes one of a closed set of texts.
func setToken(p part, kind tokenKind, texts []string) token {
	t := token{part: p, kind: kind, set: texts, prefixFree: true, suffixFree: true, width: len(texts[0])}
	for i, s := range texts {
		if s == "" {
			t.mayBeEmpty = true
		} else {
			t.first.add(s[:1])
			t.rest.add(s[1:])
		}
		if len(s) != t.width {
			t.width = 0
		}
		for j, o := range texts {
			t.prefixFree = t.prefixFree && (i == j || !strings.HasPrefix(o, s))
			t.suffixFree = t.suffixFree && (i == j || !strings.HasSuffix(o, s))
		}
	}
	return t
}

// describeDim fills in what a dimension can write in its form.
func (t *token) describeDim(d Dim, inEveryLevel bool) {
	always := inEveryLevel && !d.nullPossible()
	switch t.form {
	case formBE, formBESigned, formFloat:
		t.first, t.rest = allBytes(), allBytes()
		return
	case formPadded:
		t.first, t.rest = setOf(digits), setOf(digits)
	case formPhoenix:
		t.first, t.rest = allBytes(), allBytes()
		if t.width == 0 { // neither VARCHAR nor DECIMAL has a zero byte
			t.first[0] &^= 1
			t.rest[0] &^= 1
			t.mayBeEmpty = t.phoenix == phoenixVarchar || !inEveryLevel || d.nullPossible() && d.nullText() == ""
		}
	case formPattern:
		t.first, t.rest = setOf(digits+patternMarks), setOf(digits+patternMarks)
	case formText, formEsc:
		t.first, t.rest = alphabet(d.Type)
		t.begin, t.follow = t.first, t.rest
		t.checked = t.form == formText && d.Type.Kind == row.String && t.rest != allBytes()
		t.mayBeEmpty = d.Type.Kind == row.String && d.Type.Length == 0 || !inEveryLevel
		if t.form == formEsc {
			t.first, t.rest = t.first.escaped(), t.first.or(t.rest).escaped()
		} else if always {
			t.width = fixedText(d.Type)
		}
		t.mayBeEmpty = t.mayBeEmpty || d.nullPossible() && d.nullText() == ""
	}
	switch t.mod {
	case descending:
		t.first, t.rest = t.first.inverted(), t.rest.inverted()
	case reversed:
		t.first = t.first.or(t.rest)
		t.rest = t.first
	}
	if d.nullPossible() && d.nullText() != "" {
		t.first.add(d.nullText()[:1])
		t.rest.add(d.nullText()[1:])
	}
}

// fixedText is the number of bytes of types whose texts all have as many, or 0.
func fixedText(t row.Type) int {
	switch {
	case t.Kind == row.Date:
		return len("2006-01-02")
	case t.Kind == row.String && t.Base == "UUID":
		return 36
	case t.Kind == row.String:
		return t.Length
	}
	return 0
}

// alphabet gives the bytes that the text of a type can begin with, and those
// that can follow.
func alphabet(t row.Type) (first, rest byteSet) {
	switch t.Kind {
	case row.Bool:
		return setOf("tf"), setOf("rueals")
	case row.UInt:
		return setOf(digits), setOf(digits)
	case row.Int, row.BigInt:
		if t.Signed {
			return setOf("-" + digits), setOf(digits)
		}
		return setOf(digits), setOf(digits)
	case row.Decimal:
		return setOf("-" + digits), setOf("." + digits)
	case row.Float:
		return setOf("-NI" + digits), setOf(".e+-NaInfity" + digits)
	case row.Date:
		return setOf(digits), setOf("-" + digits)
	case row.DateTime:
		return setOf(digits), setOf("- :.+" + digits)
	}
	switch t.Base {
	case "UUID":
		return setOf(hexLower), setOf("-" + hexLower)
	case "IPv4":
		return setOf(digits), setOf("." + digits)
	case "IPv6":
		return setOf(":" + hexLower), setOf(":." + hexLower)
	}
	return allBytes(), allBytes()
}

// texts are the codes of levels, or the names of periods, in order.
func levelCodes(levels []job.Level) []string {
	codes := make([]string, len(levels))
	for i, l := range levels {
		codes[i] = l.Code
	}
	return codes
}

func periodNames(periods []job.Period) []string {
	names := make([]string, len(periods))
	for i, p := range periods {
		names[i] = string(p)
	}
	return names
}

// duplicate is a text that occurs twice.
func duplicate(texts []string) (string, bool) {
	for i, s := range texts {
		if slices.Contains(texts[:i], s) {
			return s, true
		}
	}
	return "", false
}
