package clickhouse

import (
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A cell is the destination that the driver scans one column into, and the way
// from there to a row.Value. One cell serves all rows of a stream.
type cell struct {
	dest any
	read func() row.Value
}

// scan makes the cell of a column whose values the driver gives as T.
func scan[T any](t row.Type, value func(T) row.Value) cell {
	if t.Nullable {
		p := new(*T)
		return cell{p, func() row.Value {
			if *p == nil {
				return row.Value{Kind: t.Kind, Null: true}
			}
			return value(**p)
		}}
	}
	p := new(T)
	return cell{p, func() row.Value { return value(*p) }}
}

func newCell(t row.Type) (cell, error) {
	switch t.Kind {
	case row.Bool:
		return scan(t, boolValue), nil
	case row.UInt, row.Int:
		return intCell(t)
	case row.BigInt:
		return scan(t, func(v big.Int) row.Value { return row.Value{Kind: row.BigInt, Big: new(big.Int).Set(&v)} }), nil
	case row.Float:
		if t.Bits == 32 {
			return scan(t, func(v float32) row.Value { return floatValue(float64(v)) }), nil
		}
		return scan(t, floatValue), nil
	case row.Decimal:
		return scan(t, func(v decimal.Decimal) row.Value { return decimalValue(v, t.Scale) }), nil
	case row.String:
		if t.Base == "IPv6" {
			// Its text must keep the ::ffff: of a mapped address, as the server's does.
			return scan(t, func(v netip.Addr) row.Value { return row.Value{Kind: row.String, Str: v.String()} }), nil
		}
		return scan(t, func(v string) row.Value { return row.Value{Kind: row.String, Str: v} }), nil
	case row.Date:
		return scan(t, dateValue), nil
	case row.DateTime:
		return scan(t, func(v time.Time) row.Value { return ticksValue(v, t.Scale) }), nil
	case row.Composite:
		// Only headers have such columns: whoever sees one casts it.
		return cell{new(any), func() row.Value { return row.Value{Kind: row.Composite} }}, nil
	}
	return cell{}, fmt.Errorf("no way to read a %s", t.Name)
}

func intCell(t row.Type) (cell, error) {
	switch strings.TrimSpace(t.Base) {
	case "UInt8":
		return scan(t, uintValue[uint8]), nil
	case "UInt16":
		return scan(t, uintValue[uint16]), nil
	case "UInt32":
		return scan(t, uintValue[uint32]), nil
	case "UInt64":
		return scan(t, uintValue[uint64]), nil
	case "Int8":
		return scan(t, intValue[int8]), nil
	case "Int16":
		return scan(t, intValue[int16]), nil
	case "Int32":
		return scan(t, intValue[int32]), nil
	case "Int64":
		return scan(t, intValue[int64]), nil
	}
	return cell{}, fmt.Errorf("no way to read a %s", t.Name)
}

func boolValue(v bool) row.Value {
	if v {
		return row.Value{Kind: row.Bool, Num: 1}
	}
	return row.Value{Kind: row.Bool}
}

func uintValue[T uint8 | uint16 | uint32 | uint64](v T) row.Value {
	return row.Value{Kind: row.UInt, Num: uint64(v)}
}

func intValue[T int8 | int16 | int32 | int64](v T) row.Value {
	return row.Value{Kind: row.Int, Num: uint64(int64(v))}
}

func floatValue(v float64) row.Value {
	return row.Value{Kind: row.Float, Num: math.Float64bits(v)}
}

// decimalValue brings a decimal to its column's scale: the driver may hand the
// same number with fewer digits.
func decimalValue(v decimal.Decimal, scale int) row.Value {
	unscaled := v.Coefficient()
	if shift := scale + int(v.Exponent()); shift > 0 {
		ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)
		unscaled.Mul(unscaled, ten)
	}
	return row.Value{Kind: row.Decimal, Big: unscaled}
}

// dateValue takes the calendar day that the driver shows, whatever zone it
// chose to show it in.
func dateValue(v time.Time) row.Value {
	y, m, d := v.Date()
	days := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
	return row.Value{Kind: row.Date, Num: uint64(days)}
}

const secondsPerDay = 24 * 60 * 60

func ticksValue(v time.Time, scale int) row.Value {
	perSecond := int64(math.Pow10(scale))
	ticks := v.Unix()*perSecond + int64(v.Nanosecond())/(int64(time.Second)/perSecond)
	return row.Value{Kind: row.DateTime, Num: uint64(ticks)}
}
