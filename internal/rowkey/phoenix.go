package rowkey

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// phoenixType is a type of Apache Phoenix, whose bytes are the same in keys
// and in cells.
type phoenixType uint8

const (
	notPhoenix phoenixType = iota
	phoenixUnsignedLong
	phoenixBigint
	phoenixInteger
	phoenixDouble
	phoenixDate
	phoenixTimestamp
	phoenixDecimal
	phoenixVarchar
)

// phoenixPrefix begins the names of these types in job files.
const phoenixPrefix = "phoenix_"

var phoenixNames = []string{"", "unsigned_long", "bigint", "integer", "double", "date", "timestamp", "decimal", "varchar"}

// phoenixWidths are numbers of bytes, 0 where they vary.
var phoenixWidths = [...]int{phoenixUnsignedLong: 8, phoenixBigint: 8, phoenixInteger: 4, phoenixDouble: 8, phoenixDate: 8, phoenixTimestamp: 12, phoenixVarchar: 0}

// phoenixNamed is the type of a name as phoenix_bigint.
func phoenixNamed(name string) (phoenixType, bool) {
	short, ok := strings.CutPrefix(name, phoenixPrefix)
	for i, n := range phoenixNames {
		if ok && i > 0 && n == short {
			return phoenixType(i), true
		}
	}
	return notPhoenix, false
}

func (p phoenixType) String() string { return phoenixPrefix + phoenixNames[p] }

// check refuses column types that the Phoenix type cannot hold; the remedy is
// empty if it can.
func (p phoenixType) check(t row.Type) (remedy string) {
	var fits bool
	integer := t.Kind == row.UInt || t.Kind == row.Int || t.Kind == row.BigInt
	switch p {
	case phoenixUnsignedLong, phoenixBigint, phoenixInteger:
		fits, remedy = integer, "make the expression an integer, for example with toInt64(…)"
	case phoenixDouble:
		fits, remedy = t.Kind == row.Float, "put toFloat64(…) around the expression"
	case phoenixDate:
		fits, remedy = t.Kind == row.Date || t.Kind == row.DateTime && t.Scale <= 3, "phoenix_timestamp, or toDateTime64(…, 3) around the expression: it holds milliseconds"
	case phoenixTimestamp:
		fits, remedy = t.Kind == row.Date || t.Kind == row.DateTime, "put toDateTime64(…, 9) around the expression"
	case phoenixDecimal:
		fits, remedy = integer || t.Kind == row.Decimal, "put toDecimal128(…, scale) around the expression"
	default:
		fits, remedy = t.Kind == row.String, "put toString(…) around the expression"
	}
	if fits {
		return ""
	}
	return remedy
}

// append writes a value of a type that passed check; it tells false for a
// value that the Phoenix type cannot hold.
func (p phoenixType) append(dst []byte, t *row.Type, v *row.Value) ([]byte, bool) {
	switch p {
	case phoenixUnsignedLong:
		n, ok := asInt64(v)
		return binary.BigEndian.AppendUint64(dst, uint64(n)), ok && n >= 0
	case phoenixBigint:
		n, ok := asInt64(v)
		return binary.BigEndian.AppendUint64(dst, uint64(n)^signBit), ok
	case phoenixInteger:
		n, ok := asInt64(v)
		return binary.BigEndian.AppendUint32(dst, uint32(n)^signBit32), ok && int64(int32(n)) == n
	case phoenixDouble:
		return binary.BigEndian.AppendUint64(dst, sortable(javaDouble(v.Num))+1), true
	case phoenixDate, phoenixTimestamp:
		seconds, nanos, ok := instant(t, v)
		milliseconds := seconds*1000 + nanos/1_000_000
		dst = binary.BigEndian.AppendUint64(dst, uint64(milliseconds)^signBit)
		if p == phoenixTimestamp {
			dst = binary.BigEndian.AppendUint32(dst, uint32(nanos%1_000_000))
		}
		return dst, ok
	case phoenixDecimal:
		return appendPhoenixDecimal(dst, t, v)
	}
	return append(dst, v.Str...), true
}

// sortable are the bits of a float such that they sort as the numbers do.
func sortable(bits uint64) uint64 { return bits ^ (uint64(int64(bits)>>63) | signBit) }

// unsortable is the inverse of sortable.
func unsortable(bits uint64) uint64 { return bits ^ (uint64(^int64(bits)>>63) | signBit) }

// farthest is the largest number of seconds since 1970 that times have here.
const farthest = 1 << 40

// instant is a date, which is its midnight in UTC, or a time.
func instant(t *row.Type, v *row.Value) (seconds, nanos int64, ok bool) {
	n := int64(v.Num)
	if v.Kind == row.Date {
		return n * secondsADay, 0, n > -farthest/secondsADay && n < farthest/secondsADay
	}
	perSecond := powersOfTen[t.Scale]
	seconds, rest := n/perSecond, n%perSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+perSecond
	}
	return seconds, rest * powersOfTen[9-t.Scale], seconds > -farthest && seconds < farthest
}

// parse reads what append wrote. What a value of the type cannot be written
// as is an error.
func (p phoenixType) parse(t *row.Type, b []byte) (row.Value, error) {
	v := row.Value{Kind: t.Kind}
	if width := phoenixWidths[p]; p != phoenixVarchar && p != phoenixDecimal && len(b) != width {
		return v, fmt.Errorf("%d bytes where %s has %d", len(b), p, width)
	}
	switch p {
	case phoenixUnsignedLong:
		return integerValue(t, new(big.Int).SetUint64(binary.BigEndian.Uint64(b)))
	case phoenixBigint:
		return integerValue(t, big.NewInt(int64(binary.BigEndian.Uint64(b)^signBit)))
	case phoenixInteger:
		return integerValue(t, big.NewInt(int64(int32(binary.BigEndian.Uint32(b)^signBit32))))
	case phoenixDouble:
		v.Num = unsortable(binary.BigEndian.Uint64(b) - 1)
		return v, nil
	case phoenixDate, phoenixTimestamp:
		return parseInstant(t, b)
	case phoenixDecimal:
		return parsePhoenixDecimal(t, b)
	}
	v.Str = string(b)
	return v, nil
}

// integerValue makes a number a value of a type of integers or decimals.
func integerValue(t *row.Type, n *big.Int) (row.Value, error) {
	v := row.Value{Kind: t.Kind}
	switch {
	case t.Kind == row.BigInt || t.Kind == row.Decimal:
		v.Big = n
	case t.Kind == row.UInt && n.IsUint64():
		v.Num = n.Uint64()
	case t.Kind == row.Int && n.IsInt64():
		v.Num = uint64(n.Int64())
	default:
		return v, fmt.Errorf("%s is not a value of type %s", n, t.Name)
	}
	return v, nil
}

func parseInstant(t *row.Type, b []byte) (row.Value, error) {
	v := row.Value{Kind: t.Kind}
	milliseconds := int64(binary.BigEndian.Uint64(b) ^ signBit)
	nanos := int64(0)
	if len(b) > 8 {
		nanos = int64(binary.BigEndian.Uint32(b[8:]))
	}
	seconds, rest := milliseconds/1000, milliseconds%1000
	if rest < 0 {
		seconds, rest = seconds-1, rest+1000
	}
	if seconds <= -farthest || seconds >= farthest || nanos >= 1_000_000 {
		return v, fmt.Errorf("no time of type %s", t.Name)
	}
	nanos += rest * 1_000_000
	if t.Kind == row.Date {
		if seconds%secondsADay != 0 || nanos != 0 {
			return v, fmt.Errorf("a time where the type %s has days", t.Name)
		}
		v.Num = uint64(seconds / secondsADay)
		return v, nil
	}
	if largest := math.MaxInt64/powersOfTen[t.Scale] - 1; seconds < -largest || seconds > largest {
		return v, fmt.Errorf("no time of type %s", t.Name)
	}
	if nanos%powersOfTen[9-t.Scale] != 0 {
		return v, fmt.Errorf("more than %d digits of a second's fraction", t.Scale)
	}
	v.Num = uint64(seconds*powersOfTen[t.Scale] + nanos/powersOfTen[9-t.Scale])
	return v, nil
}

// overflowsKey says that a value of a dimension has no bytes of its own: a
// zero byte ends a VARCHAR, and Phoenix has one NaN.
func (p phoenixType) overflowsKey(v *row.Value) bool {
	return p == phoenixVarchar && strings.IndexByte(v.Str, 0) >= 0 ||
		p == phoenixDouble && math.IsNaN(math.Float64frombits(v.Num)) && v.Num != plainNaN
}
