package spool

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A value is one byte, its kind and the flags below, and then
//
//	Bool, UInt            Num as a varint
//	Int, Date, DateTime   Num as a zigzag varint
//	Float                 Num in 8 bytes
//	String                the length as a varint, the bytes
//	BigInt, Decimal       the length of the absolute value as a varint, its bytes, big-endian
//
// and nothing more for a NULL. Files are read by the process that wrote them:
// the form may change with any version.
const (
	flagNull     = 0x80
	flagNegative = 0x40
	kindMask     = 0x3f
)

var (
	errKind    = errors.New("a value of a kind that has no encoding")
	errDamaged = errors.New("what was read back is not what was written")
)

// mostBytes is at least the number of bytes that a batch takes.
func mostBytes(b *row.Batch) int64 {
	n := int64(0)
	for i := range b.Values {
		v := &b.Values[i]
		n += 1 + binary.MaxVarintLen64 + int64(len(v.Str))
		if v.Big != nil {
			n += int64(v.Big.BitLen()/8) + 1
		}
	}
	return n
}

func appendValue(dst []byte, v *row.Value) ([]byte, error) {
	head := byte(v.Kind)
	if v.Null {
		return append(dst, head|flagNull), nil
	}
	switch v.Kind {
	case row.Bool, row.UInt:
		return binary.AppendUvarint(append(dst, head), v.Num), nil
	case row.Int, row.Date, row.DateTime:
		return binary.AppendVarint(append(dst, head), int64(v.Num)), nil
	case row.Float:
		return binary.LittleEndian.AppendUint64(append(dst, head), v.Num), nil
	case row.String:
		dst = binary.AppendUvarint(append(dst, head), uint64(len(v.Str)))
		return append(dst, v.Str...), nil
	case row.BigInt, row.Decimal:
		return appendBig(dst, head, v.Big)
	}
	return dst, fmt.Errorf("%w: %s", errKind, v.Kind)
}

func appendBig(dst []byte, head byte, n *big.Int) ([]byte, error) {
	if n == nil {
		return dst, fmt.Errorf("%w: a big number that is nil", errKind)
	}
	if n.Sign() < 0 {
		head |= flagNegative
	}
	size := (n.BitLen() + 7) / 8
	dst = binary.AppendUvarint(append(dst, head), uint64(size))
	at := len(dst)
	dst = append(dst, make([]byte, size)...)
	n.FillBytes(dst[at:])
	return dst, nil
}

// readValue reads a value of which at most limit bytes are there.
func readValue(r *bufio.Reader, limit int64) (row.Value, error) {
	head, err := r.ReadByte()
	if err != nil {
		return row.Value{}, err
	}
	v := row.Value{Kind: row.Kind(head & kindMask), Null: head&flagNull != 0}
	if v.Null {
		return v, nil
	}
	switch v.Kind {
	case row.Bool, row.UInt:
		v.Num, err = binary.ReadUvarint(r)
	case row.Int, row.Date, row.DateTime:
		var n int64
		n, err = binary.ReadVarint(r)
		v.Num = uint64(n)
	case row.Float:
		var b [8]byte
		_, err = io.ReadFull(r, b[:])
		v.Num = binary.LittleEndian.Uint64(b[:])
	case row.String:
		var b []byte
		b, err = readBytes(r, limit)
		v.Str = string(b)
	case row.BigInt, row.Decimal:
		var b []byte
		b, err = readBytes(r, limit)
		v.Big = new(big.Int).SetBytes(b)
		if head&flagNegative != 0 {
			v.Big.Neg(v.Big)
		}
	default:
		err = errDamaged
	}
	return v, err
}

// readBytes reads a length and as many bytes. A length beyond the limit is
// damage, and must not become an allocation.
func readBytes(r *bufio.Reader, limit int64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, errDamaged
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
