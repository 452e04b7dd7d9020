package rowkey

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// ParseText reads a value as a person types it, in the text form of its type;
// zone is that of the job, nil is UTC. More is read than written: leading
// zeros, fewer digits after a point, a DateTime of a date alone. A value out
// of the type's range is an error. The value is never NULL.
func ParseText(t row.Type, s string, zone *time.Location) (row.Value, error) {
	f := newFormatter(t, zone)
	v, err := f.parse(s)
	if err != nil {
		return row.Value{}, fmt.Errorf("%s is not a value of type %s: %w", shorten(s), t.Name, err)
	}
	v.Kind = t.Kind
	return v, nil
}

func (f *formatter) parse(s string) (row.Value, error) {
	switch f.typ.Kind {
	case row.Bool:
		switch s {
		case "true", "1":
			return row.Value{Num: 1}, nil
		case "false", "0":
			return row.Value{}, nil
		}
		return row.Value{}, fmt.Errorf("write true or false")
	case row.UInt:
		n, err := strconv.ParseUint(s, 10, bitsOf(f.typ))
		return row.Value{Num: n}, plain(err)
	case row.Int:
		n, err := strconv.ParseInt(s, 10, bitsOf(f.typ))
		return row.Value{Num: uint64(n)}, plain(err)
	case row.BigInt:
		return f.parseBig(s)
	case row.Float:
		return f.parseFloat(s)
	case row.Decimal:
		return f.parseDecimal(s)
	case row.Date:
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return row.Value{}, fmt.Errorf("write a date as 2006-01-02")
		}
		return row.Value{Num: uint64(t.Unix() / secondsADay)}, nil
	case row.DateTime:
		return f.parseDateTime(s)
	case row.String:
		if f.typ.Length > 0 && len(s) > f.typ.Length {
			return row.Value{}, fmt.Errorf("longer than %d bytes", f.typ.Length)
		}
		if pad := f.typ.Length - len(s); pad > 0 {
			s += strings.Repeat("\x00", pad)
		}
		return row.Value{Str: s}, nil
	}
	return row.Value{}, fmt.Errorf("a type of no known kind")
}

func bitsOf(t row.Type) int {
	if t.Bits == 0 {
		return 64
	}
	return t.Bits
}

// plain drops the function's name and the value from an error of strconv.
func plain(err error) error {
	if e, ok := errors.AsType[*strconv.NumError](err); ok {
		return e.Err
	}
	return err
}

func (f *formatter) parseBig(s string) (row.Value, error) {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || strings.HasPrefix(s, "+") {
		return row.Value{}, strconv.ErrSyntax
	}
	limit := f.typ.Bits
	if f.typ.Signed {
		limit--
	}
	magnitude := n
	if n.Sign() < 0 {
		magnitude = new(big.Int).Not(n)
	}
	if n.Sign() < 0 && !f.typ.Signed || limit > 0 && magnitude.BitLen() > limit {
		return row.Value{}, strconv.ErrRange
	}
	return row.Value{Big: n}, nil
}

func (f *formatter) parseFloat(s string) (row.Value, error) {
	switch s {
	case "NaN":
		return row.Value{Num: plainNaN}, nil
	case "-NaN":
		return row.Value{Num: plainNaN | signBit}, nil
	}
	if strings.ContainsAny(s, "xXpP_") {
		return row.Value{}, strconv.ErrSyntax
	}
	x, err := strconv.ParseFloat(s, bitsOf(f.typ))
	if err == nil && math.IsNaN(x) {
		err = strconv.ErrSyntax
	}
	return row.Value{Num: math.Float64bits(x)}, plain(err)
}

func (f *formatter) parseDecimal(s string) (row.Value, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > f.typ.Scale {
		return row.Value{}, fmt.Errorf("more than %d digits after the point", f.typ.Scale)
	}
	number := whole + fraction + strings.Repeat("0", f.typ.Scale-len(fraction))
	n, ok := new(big.Int).SetString(number, 10)
	if !ok || strings.ContainsAny(fraction, "+-") || strings.HasPrefix(s, "+") || strings.Trim(whole, "-") == "" {
		return row.Value{}, strconv.ErrSyntax
	}
	return row.Value{Big: n}, nil
}

func (f *formatter) parseDateTime(s string) (row.Value, error) {
	var t time.Time
	var err error
	switch {
	case len(s) == len(time.DateOnly):
		t, err = time.ParseInLocation(time.DateOnly, s, f.zone)
	case hasOffset(s):
		t, err = time.Parse("2006-01-02 15:04:05-07:00", s)
	default:
		if t, err = time.ParseInLocation(time.DateTime, s, f.zone); err == nil {
			t = t.Add(-repeated(t))
		}
	}
	if err != nil {
		return row.Value{}, fmt.Errorf("write a time as 2006-01-02 15:04:05")
	}
	scale := min(f.typ.Scale, len(powersOfTen)-1)
	perTick := int64(time.Second) / powersOfTen[scale]
	if int64(t.Nanosecond())%perTick != 0 {
		return row.Value{}, fmt.Errorf("more than %d digits of a second's fraction", scale)
	}
	return row.Value{Num: uint64(t.Unix()*powersOfTen[scale] + int64(t.Nanosecond())/perTick)}, nil
}

// hasOffset says that a text of a time ends in ±hh:mm.
func hasOffset(s string) bool {
	return len(s) > len(time.DateTime) && (s[len(s)-6] == '+' || s[len(s)-6] == '-')
}
