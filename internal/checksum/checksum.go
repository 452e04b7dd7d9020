// Package checksum sums the cells of rows in no order: the same cells give the
// same sum, whoever sums them and in whatever parts.
//
// The sum is that modulo 2^128 of CityHash128 (version 1.0.2, ClickHouse's) of each
// cell with its key, family and qualifier. So it tells a cell that is missing, is
// there twice, has another value, or is in another row or column; what it does not
// see are changes whose hashes happen to cancel out, about one of 2^128. It
// guards against errors, not against somebody who wants to deceive.
package checksum

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/go-faster/city"
)

// A Sum is that of a set of cells. The zero value is that of none.
type Sum struct{ High, Low uint64 }

// Add adds the sum of other cells.
func (s *Sum) Add(o Sum) {
	var carry uint64
	s.Low, carry = bits.Add64(s.Low, o.Low, 0)
	s.High, _ = bits.Add64(s.High, o.High, carry)
}

// Buckets is the number of sums in a [Table].
const Buckets = 8192

// A Table has a sum for each bucket of rows, so that it shows where two sets of
// rows differ. A row's bucket is that of its key. It takes 128 KiB.
type Table [Buckets]Sum

// Add adds the sums of other cells.
func (t *Table) Add(o *Table) {
	for i := range o {
		t[i].Add(o[i])
	}
}

// Total is the sum of all cells.
func (t *Table) Total() (s Sum) {
	for i := range t {
		s.Add(t[i])
	}
	return s
}

// Bucket is the bucket of a row's key.
func Bucket(key []byte) int { return int(city.CH64(key) % Buckets) }

// String is 32 hexadecimal digits.
func (s Sum) String() string { return fmt.Sprintf("%016x%016x", s.High, s.Low) }

// A Hasher sums the cells of one row after another. Its zero value is ready; it
// is used by one goroutine, and keeps its memory.
type Hasher struct {
	buffer []byte
	key    int // the length of the row's part of the buffer
	bucket int
}

// Row begins a row, and gives its bucket.
func (h *Hasher) Row(key []byte) (bucket int) {
	h.bucket = Bucket(key)
	h.buffer = append(binary.AppendUvarint(h.buffer[:0], uint64(len(key))), key...)
	h.key = len(h.buffer)
	return h.bucket
}

// AddTo adds one cell of the row to a table.
func (h *Hasher) AddTo(t *Table, family, qualifier, value []byte) {
	t[h.bucket].Add(h.Cell(family, qualifier, value))
}

// Cell gives the sum of one cell of the row. Nothing is kept of the arguments.
func (h *Hasher) Cell(family, qualifier, value []byte) Sum {
	h.buffer = h.buffer[:h.key]
	h.buffer = append(binary.AppendUvarint(h.buffer, uint64(len(family))), family...)
	h.buffer = append(binary.AppendUvarint(h.buffer, uint64(len(qualifier))), qualifier...)
	h.buffer = append(h.buffer, value...)
	hash := city.CH128(h.buffer)
	return Sum{High: hash.High, Low: hash.Low}
}
