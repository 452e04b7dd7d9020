// Package row holds the values that travel from ClickHouse to a sink: types,
// values and batches of rows, in a form that neither boxes nor reflects.
package row

import (
	"math/big"
)

// A Column is a named, typed column of a result.
type Column struct {
	Name string
	Type Type
}

// A Value is one value of a column. Which fields are set depends on Kind:
//
//	Bool           Num is 0 or 1
//	UInt           Num, up to 64 bits
//	Int            Num holds the int64 in two's complement
//	BigInt         Big; 128 and 256 bits, signed or not
//	Float          Num is math.Float64bits (a Float32 is widened exactly)
//	Decimal        Big is the unscaled value; the scale is Type.Scale
//	String         Str, any bytes; Enum gives the name, FixedString all its
//	               bytes with the zero padding, IPv4, IPv6 and UUID their text
//	Date           Num holds the int64 days since 1970-01-01
//	DateTime       Num holds the int64 ticks since 1970-01-01T00:00:00Z; there
//	               are 10^Type.Scale ticks a second
//
// A NULL has Null set and nothing else.
type Value struct {
	Kind Kind
	Null bool
	Num  uint64
	Str  string
	Big  *big.Int
}

// Size is the approximate memory of the value in bytes.
func (v *Value) Size() int {
	n := 48 + len(v.Str)
	if v.Big != nil {
		n += 48
	}
	return n
}

// A Batch is a number of rows of one width, row after row in one slice. The
// producer owns it until it is handed over; a batch can be reused after Reset.
type Batch struct {
	// Width is the number of values in a row: dimensions, then metrics.
	Width int
	// Values holds Len()*Width values.
	Values []Value
}

// Len is the number of rows.
func (b *Batch) Len() int {
	if b.Width == 0 {
		return 0
	}
	return len(b.Values) / b.Width
}

// Row is the i-th row; it aliases the batch.
func (b *Batch) Row(i int) []Value {
	return b.Values[i*b.Width : (i+1)*b.Width : (i+1)*b.Width]
}

// Size is the approximate memory of the batch in bytes.
func (b *Batch) Size() int {
	n := 0
	for i := range b.Values {
		n += b.Values[i].Size()
	}
	return n
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset(width int) {
	clear(b.Values)
	b.Values = b.Values[:0]
	b.Width = width
}
