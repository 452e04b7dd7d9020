package hbase

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Puts is a batch of rows for one table, all with one timestamp. Its memory
// is its own and can be used again after Reset. It is not safe for concurrent use.
//
// A row is built by BeginRow, then for each cell Cell and EndCell, then EndRow;
// Seal ends the batch, and a [Sender] sends what is not yet acknowledged.
type Puts struct {
	family int // length of the family's name
	// heads are, by column, what stands between a cell's key and value on the wire.
	heads [][]byte

	built []byte // the rows' cells as on the wire, in the order of building
	key   []byte // of the row that is being built
	from  int    // where that row's cells begin
	cells int32  // of that row
	size  int64  // of that row, as Bytes counts

	rows    []putRow // of the batch, sorted by Seal
	pending []putRow // sealed and not acknowledged, sorted
	waiting int      // the size of the pending rows' cells
	acked   []bool   // of a send under way, by index in pending
	parts   []part   // memory of the requests of a send

	rowsTotal, cellsTotal, bytesTotal int64
}

// putRow is a row of built.
type putRow struct {
	from, to, keyLength int
	cells               int32
}

// putType is the cell type Put on the wire.
const putType = 4

// cellPrefix is the length of what stands in front of the key of a cell: three
// lengths of 4 bytes and one of 2.
const cellPrefix = 14

// NewPuts makes an empty batch. qualifiers are the columns, addressed by their
// index; timestamp is in milliseconds.
func NewPuts(family string, qualifiers []string, timestamp int64) *Puts {
	p := &Puts{family: len(family)}
	for _, q := range qualifiers {
		head := append([]byte{byte(len(family))}, family...)
		head = append(head, q...)
		head = binary.BigEndian.AppendUint64(head, uint64(timestamp))
		p.heads = append(p.heads, append(head, putType))
	}
	return p
}

// BeginRow begins a row; key is copied.
func (p *Puts) BeginRow(key []byte) {
	p.key, p.from = append(p.key[:0], key...), len(p.built)
	p.cells, p.size = 0, int64(len(key))
}

// Cell begins a cell of the row and returns a buffer to append its value to.
func (p *Puts) Cell(column int) []byte {
	b := p.built
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.key)))
	b = append(b, p.key...)
	return append(b, p.heads[column]...)
}

// EndCell takes the buffer that Cell returned, with the value. A cell that is
// not ended does not exist.
func (p *Puts) EndCell(column int, buffer []byte) {
	keyLength := 2 + len(p.key) + len(p.heads[column])
	start := len(p.built)
	valueLength := len(buffer) - start - 12 - keyLength
	binary.BigEndian.PutUint32(buffer[start:], uint32(8+keyLength+valueLength))
	binary.BigEndian.PutUint32(buffer[start+4:], uint32(keyLength))
	binary.BigEndian.PutUint32(buffer[start+8:], uint32(valueLength))
	p.built = buffer
	p.cells++
	// The qualifier is in the head, with 1 + family + 8 + 1 bytes around it.
	p.size += int64(valueLength + len(p.heads[column]) - p.family - 10)
}

// EndRow ends the row. It tells false for a row without cells, which HBase
// cannot hold; it is not part of the batch.
func (p *Puts) EndRow() bool {
	if p.cells == 0 {
		return false
	}
	p.rows = append(p.rows, putRow{p.from, len(p.built), len(p.key), p.cells})
	p.rowsTotal++
	p.cellsTotal += int64(p.cells)
	p.bytesTotal += p.size
	return true
}

// DropRow takes back a row that was begun.
func (p *Puts) DropRow() { p.built = p.built[:p.from] }

// Rows is the number of rows in the batch.
func (p *Puts) Rows() int64 { return p.rowsTotal }

// Cells is the number of cells in the batch.
func (p *Puts) Cells() int64 { return p.cellsTotal }

// Bytes is the sum of the batch's keys, qualifiers and values.
func (p *Puts) Bytes() int64 { return p.bytesTotal }

// WireSize is the size of the batch's cells on the wire, and in memory.
func (p *Puts) WireSize() int { return len(p.built) }

// Memory is the size of the memory that the batch holds, used or not.
func (p *Puts) Memory() int { return cap(p.built) }

// Reset empties the batch for the next use of its memory. No send may be under way.
func (p *Puts) Reset() {
	p.built, p.rows, p.pending, p.waiting = p.built[:0], p.rows[:0], p.pending[:0], 0
	p.rowsTotal, p.cellsTotal, p.bytesTotal = 0, 0, 0
}

// DuplicateKeyError says that two rows of a batch have the same key.
type DuplicateKeyError struct {
	Key []byte
	// Values are those of the two rows' cells, by column; nil for a cell that
	// the row does not have.
	Values [2][][]byte
}

// Error shows the key.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("two rows have the row key %q", e.Key)
}

func (p *Puts) rowKey(r putRow) []byte {
	return p.built[r.from+cellPrefix : r.from+cellPrefix+r.keyLength]
}

// Seal sorts the rows by key, so that a region's rows lie side by side. Two
// rows with one key are a *DuplicateKeyError.
func (p *Puts) Seal() error {
	slices.SortFunc(p.rows, func(a, b putRow) int { return bytes.Compare(p.rowKey(a), p.rowKey(b)) })
	for i := 1; i < len(p.rows); i++ {
		if k := p.rowKey(p.rows[i]); bytes.Equal(k, p.rowKey(p.rows[i-1])) {
			return &DuplicateKeyError{bytes.Clone(k), [2][][]byte{p.values(p.rows[i-1]), p.values(p.rows[i])}}
		}
	}
	p.pending = append(p.pending[:0], p.rows...)
	p.waiting = len(p.built)
	return nil
}

// values copies the values of a row's cells.
func (p *Puts) values(r putRow) [][]byte {
	out := make([][]byte, len(p.heads))
	for cells := p.built[r.from:r.to]; len(cells) > 0; {
		keyLength := int(binary.BigEndian.Uint32(cells[4:]))
		end := 4 + int(binary.BigEndian.Uint32(cells))
		head := cells[cellPrefix+r.keyLength : 12+keyLength]
		if i := slices.IndexFunc(p.heads, func(h []byte) bool { return bytes.Equal(h, head) }); i >= 0 {
			out[i] = append([]byte{}, cells[12+keyLength:end]...)
		}
		cells = cells[end:]
	}
	return out
}

// Pending is the number of rows that are sealed and not acknowledged.
func (p *Puts) Pending() int { return len(p.pending) }

// PendingSize is the size of the pending rows' cells on the wire.
func (p *Puts) PendingSize() int { return p.waiting }

// settle drops the acknowledged rows from the pending ones.
func (p *Puts) settle() {
	left := p.pending[:0]
	p.waiting = 0
	for i, r := range p.pending {
		if !p.acked[i] {
			left = append(left, r)
			p.waiting += r.to - r.from
		}
	}
	p.pending = left
}
