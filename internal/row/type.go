package row

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the family of a type: what the mover has to know to write a value.
type Kind uint8

// The kinds; see [Value] for how each is held.
const (
	Invalid Kind = iota
	Bool
	UInt
	Int
	BigInt
	Float
	Decimal
	String
	Date
	DateTime
	// Composite is a type that holds several values. It has no form in a key or a
	// cell: the planner casts a dimension of it to text.
	Composite
)

// String is the kind's name for messages.
func (k Kind) String() string {
	names := [...]string{"invalid", "bool", "unsigned integer", "signed integer", "big integer",
		"float", "decimal", "string", "date", "date and time", "composite"}
	if int(k) < len(names) {
		return names[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// A Type is a ClickHouse type as far as the mover has to know it.
type Type struct {
	// Name is the type as ClickHouse prints it.
	Name string
	// Base is the name without Nullable and LowCardinality.
	Base string
	// Kind is how values are held.
	Kind Kind
	// Nullable says that NULL can occur.
	Nullable bool
	// Bits is the width of an integer or float.
	Bits int
	// Signed tells BigInts apart.
	Signed bool
	// Scale is the number of decimal digits after the point of a Decimal, or
	// of a second's fraction of a DateTime64.
	Scale int
	// Length is that of a FixedString in bytes.
	Length int
	// JSON says of a String that it is the JSON of a composite value.
	JSON bool
}

// ParseType reads a type as ClickHouse prints it. Types that no group can have
// (AggregateFunction …) are errors.
func ParseType(name string) (Type, error) {
	t := Type{Name: name}
	base := strings.TrimSpace(name)
	for {
		if inner, ok := unwrap(base, "LowCardinality"); ok {
			base = inner
			continue
		}
		if inner, ok := unwrap(base, "Nullable"); ok {
			base, t.Nullable = inner, true
			continue
		}
		break
	}
	t.Base = base
	if err := t.parseBase(base); err != nil {
		return Type{}, fmt.Errorf("type %s: %w", name, err)
	}
	return t, nil
}

func unwrap(s, outer string) (string, bool) {
	inner, ok := strings.CutPrefix(s, outer+"(")
	if !ok || !strings.HasSuffix(inner, ")") {
		return s, false
	}
	return strings.TrimSpace(inner[:len(inner)-1]), true
}

func (t *Type) parseBase(base string) error {
	head, args, _ := strings.Cut(strings.TrimSuffix(base, ")"), "(")
	switch head {
	case "Bool":
		t.Kind = Bool
		return nil
	case "String", "UUID", "IPv4", "IPv6", "Enum8", "Enum16":
		t.Kind = String
		return nil
	case "FixedString":
		t.Kind = String
		return t.intArg(&t.Length, args)
	case "Date", "Date32":
		t.Kind = Date
		return nil
	case "DateTime":
		t.Kind = DateTime
		return nil
	case "DateTime64":
		t.Kind = DateTime
		scale, _, _ := strings.Cut(args, ",")
		return t.intArg(&t.Scale, scale)
	case "Array", "Tuple", "Map":
		t.Kind = Composite
		return nil
	case "Decimal":
		t.Kind = Decimal
		_, scale, _ := strings.Cut(args, ",")
		return t.intArg(&t.Scale, scale)
	}
	for prefix, kind := range map[string]Kind{"UInt": UInt, "Int": Int, "Float": Float} {
		if digits, ok := strings.CutPrefix(head, prefix); ok {
			if t.intArg(&t.Bits, digits) == nil {
				t.Kind, t.Signed = kind, kind != UInt
				if t.Bits > 64 {
					t.Kind = BigInt
				}
				return nil
			}
		}
	}
	return fmt.Errorf("not a type that a key or a cell can hold; wrap the expression, for example in toString(…) or finalizeAggregation(…)")
}

func (t *Type) intArg(dst *int, s string) error {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return fmt.Errorf("cannot read the number %q", s)
	}
	*dst = n
	return nil
}
