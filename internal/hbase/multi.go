package hbase

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Durability is what a put waits for before it is acknowledged; the numbers are
// those of HBase's protocol.
type Durability byte

const (
	// DurabilityTable is as the table says, which is the write-ahead log's
	// reaching the file system unless it was made otherwise.
	DurabilityTable Durability = 0
	// DurabilityNone writes no log: the death of a server loses acknowledged rows.
	DurabilityNone Durability = 1
	// DurabilityAsync acknowledges before the log is written, with the same risk
	// for the last moments.
	DurabilityAsync Durability = 2
	// DurabilitySync acknowledges when the write-ahead log has reached the file
	// system, whatever the table says.
	DurabilitySync Durability = 3
)

// span is a run of rows with neighbouring keys that lie in one region: the
// indexes [from, to) in the pending rows of a batch.
type span struct {
	region   string
	from, to int
}

// part is the share of one server in a send, with its memory.
type part struct {
	server  string
	spans   []span
	rows    int
	bytes   int
	message []byte
	buffers net.Buffers
}

// reset keeps the memory.
func (r *part) reset(server string) {
	clear(r.buffers) // they point into memory of batches
	r.server, r.spans, r.rows, r.bytes, r.message, r.buffers = server, r.spans[:0], 0, 0, r.message[:0], r.buffers[:0]
}

// encode builds the request: what is a MultiRequest in HBase's protocol,
// without an object for each row, and the cells of all rows behind it in the
// same order. A row's key is that of its first cell.
//
//	MultiRequest {1: RegionAction}…
//	RegionAction {1: RegionSpecifier {1: type, 2: name}, 3: Action…}
//	Action       {1: index, 2: MutationProto {2: type, 6: durability, 8: cells}}
//
// An action's index is that of its row in the request.
func (r *part) encode(p *Puts, d Durability) {
	const put, byName = 2, 1
	index := 0
	for _, s := range r.spans {
		specifier := 2 + 1 + protowire.SizeBytes(len(s.region))
		size := 1 + protowire.SizeBytes(specifier)
		for i, row := range p.pending[s.from:s.to] {
			size += 1 + protowire.SizeBytes(actionSize(index+i, row, d))
		}
		m := protowire.AppendVarint(append(r.message, 1<<3|2), uint64(size))
		m = protowire.AppendVarint(append(m, 1<<3|2), uint64(specifier))
		m = protowire.AppendString(append(m, 1<<3, byName, 2<<3|2), s.region)
		for _, row := range p.pending[s.from:s.to] {
			m = protowire.AppendVarint(append(m, 3<<3|2), uint64(actionSize(index, row, d)))
			m = protowire.AppendVarint(append(m, 1<<3), uint64(index))
			m = protowire.AppendVarint(append(m, 2<<3|2), uint64(mutationSize(row, d)))
			m = append(m, 2<<3, put)
			if d != DurabilityTable {
				m = append(m, 6<<3, byte(d))
			}
			m = protowire.AppendVarint(append(m, 8<<3), uint64(row.cells))
			cells := p.built[row.from:row.to:row.to]
			r.buffers = append(r.buffers, cells)
			r.bytes += len(cells)
			index++
		}
		r.message = m
	}
	r.rows = index
}

func mutationSize(row putRow, d Durability) int {
	n := 2 + 1 + protowire.SizeVarint(uint64(row.cells))
	if d != DurabilityTable {
		n += 2
	}
	return n
}

func actionSize(index int, row putRow, d Durability) int {
	return 1 + protowire.SizeVarint(uint64(index)) + 1 + protowire.SizeBytes(mutationSize(row, d))
}

// exception is how a server refused a row, a region's rows or a request.
type exception struct{ class, stack string }

// Error has the form that gohbase gives the exceptions of whole requests.
func (e *exception) Error() string { return javaMark + e.class + ":\n" + e.stack }

// errUnanswered is for rows that the answer does not mention.
var errUnanswered = errors.New("the server's answer does not mention the row")

// decode reads the answer: acked is called for the index of each row that the
// server says it has put, failed for every other.
//
//	MultiResponse      {1: RegionActionResult}…, in the order of the request
//	RegionActionResult {1: ResultOrException…, 2: NameBytesPair}
//	ResultOrException  {1: index, 2: result, 3: NameBytesPair}
func (r *part) decode(answer []byte, acked func(row int), failed func(from, to int, err error)) error {
	seen := make([]bool, r.rows)
	region, base := 0, 0
	err := fields(answer, func(number protowire.Number, value []byte, _ uint64) error {
		if number != 1 {
			return nil
		}
		if region == len(r.spans) {
			return errors.New("an answer for more regions than were asked")
		}
		rows := r.spans[region].to - r.spans[region].from
		if err := decodeRegion(value, base, base+rows, seen, acked, failed); err != nil {
			return err
		}
		base += rows
		region++
		return nil
	})
	for i, s := range seen {
		if !s {
			failed(i, i+1, errUnanswered)
		}
	}
	return err
}

func decodeRegion(message []byte, from, to int, seen []bool, acked func(int), failed func(from, to int, err error)) error {
	return fields(message, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 1:
			return decodeRow(value, from, to, seen, acked, failed)
		case 2:
			e, err := decodeException(value)
			if err != nil {
				return err
			}
			for i := from; i < to; i++ {
				seen[i] = true
			}
			failed(from, to, e)
		}
		return nil
	})
}

func decodeRow(message []byte, from, to int, seen []bool, acked func(int), failed func(from, to int, err error)) error {
	index, put := -1, false
	var refused *exception
	err := fields(message, func(number protowire.Number, value []byte, n uint64) (err error) {
		switch number {
		case 1:
			index = int(uint32(n))
		case 2:
			put = true
		case 3:
			refused, err = decodeException(value)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case index < from || index >= to || seen[index]:
		return fmt.Errorf("an answer for row %d among those from %d to %d, or a second one", index, from, to)
	case refused != nil:
		seen[index] = true
		failed(index, index+1, refused)
	case put:
		seen[index] = true
		acked(index)
	}
	return nil
}

// decodeException reads a NameBytesPair {1: name, 2: value}.
func decodeException(message []byte) (*exception, error) {
	e := &exception{}
	err := fields(message, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 1:
			e.class = string(value)
		case 2:
			e.stack = string(value)
		}
		return nil
	})
	return e, err
}

// fields calls f for each field of a message: with the bytes of one that has a
// length, with the number of a varint.
func fields(message []byte, f func(number protowire.Number, value []byte, n uint64) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		var value []byte
		var n uint64
		switch kind {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if err := f(number, value, n); err != nil {
			return err
		}
	}
	return nil
}

// multiCall is a request as gohbase's connections take it. It is used once: a
// late answer may still arrive for it. Its memory is read until QueueRPC
// returns, not after.
type multiCall struct {
	ctx    context.Context
	part   *part
	result chan hrpc.RPCResult
}

func newMultiCall(ctx context.Context, r *part) *multiCall {
	return &multiCall{ctx: ctx, part: r, result: make(chan hrpc.RPCResult, 1)}
}

func (m *multiCall) Table() []byte                   { return nil }
func (m *multiCall) Key() []byte                     { return nil }
func (m *multiCall) Name() string                    { return "Multi" }
func (m *multiCall) Description() string             { return "MULTI" }
func (m *multiCall) Region() hrpc.RegionInfo         { return nil }
func (m *multiCall) SetRegion(hrpc.RegionInfo)       {}
func (m *multiCall) Context() context.Context        { return m.ctx }
func (m *multiCall) ResultChan() chan hrpc.RPCResult { return m.result }
func (m *multiCall) CellBlocksEnabled() bool         { return true }

// ToProto would be the form with the cells in the message, which gohbase does
// not ask for where there are cell blocks.
func (m *multiCall) ToProto() proto.Message { return nil }

// NewResponse is an empty message: it keeps the bytes of fields it does not
// know, and those are decoded without an object for each row.
func (m *multiCall) NewResponse() proto.Message { return &pb.IsMasterRunningRequest{} }

// SerializeCellBlocks gives the request as the unknown fields of an empty
// message, which are the same bytes on the wire.
func (m *multiCall) SerializeCellBlocks(buffers [][]byte) (proto.Message, [][]byte, uint32) {
	request := &pb.IsMasterRunningRequest{}
	request.ProtoReflect().SetUnknown(m.part.message)
	return request, append(buffers, m.part.buffers...), uint32(m.part.bytes)
}
