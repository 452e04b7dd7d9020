package hbase

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// Puts is a batch of rows for one table, all with one timestamp. Its memory
// can be used again after Reset. It is not safe for concurrent use.
//
// A row is built by BeginRow, then for each cell Cell and EndCell, then EndRow;
// Seal ends the batch, and Send sends what is not yet acknowledged.
type Puts struct {
	table  []byte
	family int // length of the family's name
	// heads are, by column, what stands between a cell's key and value on the wire.
	heads [][]byte

	built []byte // the rows' cells in the order of building
	key   []byte // of the row that is being built
	from  int    // where that row's cells begin
	cells int32  // of that row
	size  int64  // of that row, as Bytes counts
	rows  []putRow

	sealed  []byte // the rows' cells in the order of keys
	puts    []*put // one a row, kept for the next batch
	pending []hrpc.Call
	dirty   bool // gohbase may still hold some of it

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
func NewPuts(table, family string, qualifiers []string, timestamp int64) *Puts {
	p := &Puts{table: []byte(table), family: len(family)}
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

// WireSize is the size of the batch on the wire.
func (p *Puts) WireSize() int { return len(p.built) }

// Reset empties the batch for the next use of its memory. After a Send that
// ran out of time the memory is left to gohbase, which may still read it.
func (p *Puts) Reset() {
	if p.dirty {
		p.sealed, p.puts, p.dirty = nil, nil, false
	}
	p.built, p.rows, p.sealed = p.built[:0], p.rows[:0], p.sealed[:0]
	clear(p.pending)
	p.pending = p.pending[:0]
	p.rowsTotal, p.cellsTotal, p.bytesTotal = 0, 0, 0
}

// DuplicateKeyError says that two rows of a batch have the same key.
type DuplicateKeyError struct{ Key []byte }

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
			return &DuplicateKeyError{bytes.Clone(k)}
		}
	}
	p.sealed = slices.Grow(p.sealed[:0], len(p.built))
	for len(p.puts) < len(p.rows) {
		p.puts = append(p.puts, newBatchPut())
	}
	for i, r := range p.rows {
		from := len(p.sealed)
		p.sealed = append(p.sealed, p.built[r.from:r.to]...)
		p.puts[i].set(p.table, p.sealed[from:], r)
		p.pending = append(p.pending, p.puts[i])
	}
	return nil
}

// Pending is the number of rows that are not acknowledged.
func (p *Puts) Pending() int { return len(p.pending) }

// SendPuts sends the rows that are not acknowledged yet, once, within ctx, which
// must have a deadline. Everything without an acknowledgement stays pending; the
// error is classified, a permanent one first.
func (c *Client) SendPuts(ctx context.Context, p *Puts) error {
	for _, call := range p.pending {
		call.(*put).ctx = ctx
	}
	results, ok := c.data.SendBatch(ctx, p.pending)
	if ok {
		p.pending = p.pending[:0]
		return nil
	}
	var worst error
	left := p.pending[:0]
	for i, r := range results {
		if r.Error == nil {
			continue
		}
		left = append(left, p.pending[i])
		if worst == nil || failure.IsTransient(worst) {
			if err := c.putError(ctx, string(p.table), r.Error); worst == nil || !failure.IsTransient(err) {
				worst = err
			}
		}
	}
	p.pending = left
	// An answer to these may still come, and gohbase would deliver it to the
	// call and wait until it is taken: the next attempt has calls of its own.
	p.dirty = true
	for i, call := range p.pending {
		p.pending[i] = call.(*put).again()
	}
	return worst
}

// putError classifies; the end of ctx is the end of the attempt's time.
func (c *Client) putError(ctx context.Context, table string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return c.classify(ctx, "write to "+table, err)
	}
	return c.classify(context.WithoutCancel(ctx), "write to "+table, err)
}

// put is one row as gohbase wants it: a call that can be part of a batch. It
// has its cells ready for the wire, where gohbase's own type would build them
// from a map of maps.
type put struct {
	hrpc.Batchable // nil: gives the type the unexported method that gohbase asks for

	ctx      context.Context
	table    []byte
	key      []byte
	cells    []byte
	count    int32
	region   hrpc.RegionInfo
	result   chan hrpc.RPCResult
	mutation pb.MutationProto
	request  pb.MutateRequest
	response pb.MutateResponse
}

var mutatePut = pb.MutationProto_PUT.Enum()

func newBatchPut() *put {
	m := &put{result: make(chan hrpc.RPCResult, 1)}
	m.mutation.MutateType = mutatePut
	m.mutation.AssociatedCellCount = &m.count
	m.request.Mutation = &m.mutation
	return m
}

func (m *put) set(table, cells []byte, r putRow) {
	m.table, m.cells, m.count = table, cells, r.cells
	m.key = cells[cellPrefix : cellPrefix+r.keyLength]
	m.mutation.Row = m.key
	m.region, m.ctx = nil, nil
}

// again is a new call for the same row.
func (m *put) again() *put {
	n := newBatchPut()
	n.table, n.cells, n.count, n.key = m.table, m.cells, m.count, m.key
	n.mutation.Row = n.key
	return n
}

func (m *put) SkipBatch() bool                  { return false }
func (m *put) Table() []byte                    { return m.table }
func (m *put) Key() []byte                      { return m.key }
func (m *put) Name() string                     { return "Mutate" }
func (m *put) Description() string              { return "PUT" }
func (m *put) Region() hrpc.RegionInfo          { return m.region }
func (m *put) SetRegion(region hrpc.RegionInfo) { m.region = region }
func (m *put) Context() context.Context         { return m.ctx }
func (m *put) ResultChan() chan hrpc.RPCResult  { return m.result }
func (m *put) CellBlocksEnabled() bool          { return true }

// NewResponse gives gohbase the message to put the server's answer in.
func (m *put) NewResponse() proto.Message { return &m.response }

// ToProto would be the form with the cells in the message, which gohbase does
// not ask for where there are cell blocks.
func (m *put) ToProto() proto.Message { return nil }

// SerializeCellBlocks gives the message without the cells, and the cells after
// those of the row before; where the two lie side by side in memory they
// become one buffer, so that a region's rows are written by few system calls.
func (m *put) SerializeCellBlocks(before [][]byte) (proto.Message, [][]byte, uint32) {
	size := uint32(len(m.cells))
	if n := len(before); n > 0 {
		if last := before[n-1]; adjacent(last, m.cells) {
			before[n-1] = last[:len(last)+len(m.cells)]
			return &m.request, before, size
		}
	}
	return &m.request, append(before, m.cells), size
}

// adjacent says that b begins where a ends, in the same buffer: both reach to
// its end by their capacity.
func adjacent(a, b []byte) bool {
	if len(b) == 0 || cap(a)-len(a) != cap(b) {
		return false
	}
	return &a[:len(a)+1][len(a)] == &b[0]
}

// DeserializeCellBlocks is for answers with cells, which puts do not have.
func (m *put) DeserializeCellBlocks(proto.Message, []byte) (uint32, error) { return 0, nil }
