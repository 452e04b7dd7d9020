package rowkey

import (
	"math"
	"strconv"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// formatter writes the text form of one type's values.
type formatter struct {
	typ  row.Type
	zone *time.Location
}

func newFormatter(t row.Type, zone *time.Location) formatter {
	if zone == nil {
		zone = time.UTC
	}
	return formatter{typ: t, zone: zone}
}

// text appends the text form of a value that is not NULL.
func (f *formatter) text(dst []byte, v *row.Value) []byte {
	switch v.Kind {
	case row.Bool:
		return strconv.AppendBool(dst, v.Num != 0)
	case row.UInt:
		return strconv.AppendUint(dst, v.Num, 10)
	case row.Int:
		return strconv.AppendInt(dst, int64(v.Num), 10)
	case row.BigInt:
		return appendBig(dst, v.Big)
	case row.Float:
		return f.float(dst, math.Float64frombits(v.Num))
	case row.Decimal:
		return decimalText(dst, v.Big, f.typ.Scale)
	case row.Date:
		return dateText(dst, int64(v.Num))
	case row.DateTime:
		return f.dateTime(dst, int64(v.Num))
	default:
		return append(dst, v.Str...)
	}
}

// float is the shortest text that reads back as the same number of its width.
func (f *formatter) float(dst []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(dst, "NaN"...)
	case math.IsInf(x, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(x, -1):
		return append(dst, "-Infinity"...)
	}
	bits := 64
	if f.typ.Bits == 32 && float64(float32(x)) == x { // not what a cell of eight bytes may hold besides
		bits = 32
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, x, format, -1, bits)
}

const secondsADay = 24 * 60 * 60

func dateText(dst []byte, days int64) []byte {
	return time.Unix(days*secondsADay, 0).UTC().AppendFormat(dst, time.DateOnly)
}

var powersOfTen = [...]int64{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000}

func (f *formatter) dateTime(dst []byte, ticks int64) []byte {
	scale := min(f.typ.Scale, len(powersOfTen)-1)
	perSecond := powersOfTen[scale]
	seconds, fraction := ticks/perSecond, ticks%perSecond
	if fraction < 0 {
		seconds, fraction = seconds-1, fraction+perSecond
	}
	t := time.Unix(seconds, 0).In(f.zone)
	dst = t.AppendFormat(dst, time.DateTime)
	if scale > 0 {
		dst = append(dst, '.')
		for p := perSecond / 10; p > 1 && fraction < p; p /= 10 {
			dst = append(dst, '0')
		}
		dst = strconv.AppendInt(dst, fraction, 10)
	}
	if repeated(t) > 0 {
		dst = t.AppendFormat(dst, "-07:00")
	}
	return dst
}

// repeated is how long before t the clock showed the same, if t is in the
// second pass of an hour that passes twice; else 0.
func repeated(t time.Time) time.Duration {
	start, _ := t.ZoneBounds()
	if start.IsZero() {
		return 0
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := t.Zone()
	back := time.Duration(before-now) * time.Second
	if back <= 0 || t.Sub(start) >= back {
		return 0
	}
	return back
}
