package rowkey

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

const (
	// phoenixDigits is the precision of Phoenix's DECIMAL.
	phoenixDigits = 38
	// The first byte of a DECIMAL is the power of 100 of its first digit, from
	// these on upwards, or downwards for a negative number.
	positiveExponent, negativeExponent = 193, 62
	// negativeEnd follows the digits of a negative number, so that a longer
	// one sorts before.
	negativeEnd = 102
	decimalZero = 128
)

// appendPhoenixDecimal writes the digits to the base 100, without zeros at the
// end, each plus 1, or 101 minus each for a negative number.
func appendPhoenixDecimal(dst []byte, t *row.Type, v *row.Value) ([]byte, bool) {
	var buf [96]byte
	text := append(buf[:0], '0') // room for an even number of digits
	switch v.Kind {
	case row.UInt:
		text = strconv.AppendUint(text, v.Num, 10)
	case row.Int:
		text = strconv.AppendInt(text, int64(v.Num), 10)
	default:
		text = appendBig(text, v.Big)
	}
	negative := text[1] == '-'
	if negative {
		text[1] = '0'
		text = text[1:]
	}
	fraction := decimalScale(t)
	if fraction%2 != 0 {
		text = append(text, '0')
		fraction++
	}
	if len(text)%2 != 0 {
		text = text[1:]
	}
	pairs := len(text)/2 - 1
	significant := bytes.Trim(text, "0")
	if len(significant) == 0 {
		return append(dst, decimalZero), true
	}
	for text[0] == '0' && text[1] == '0' {
		text = text[2:]
		pairs--
	}
	exponent := pairs - fraction/2
	if negative {
		dst = append(dst, byte(negativeExponent-exponent))
	} else {
		dst = append(dst, byte(positiveExponent+exponent))
	}
	for len(text) > 2 && text[len(text)-1] == '0' && text[len(text)-2] == '0' {
		text = text[:len(text)-2]
	}
	for i := 0; i < len(text); i += 2 {
		digit := (text[i]-'0')*10 + text[i+1] - '0'
		if negative {
			dst = append(dst, 101-digit)
		} else {
			dst = append(dst, digit+1)
		}
	}
	if negative {
		dst = append(dst, negativeEnd)
	}
	return dst, len(significant) <= phoenixDigits
}

// decimalScale is the number of digits after the point of a number's type.
func decimalScale(t *row.Type) int {
	if t.Kind == row.Decimal {
		return t.Scale
	}
	return 0
}

func parsePhoenixDecimal(t *row.Type, b []byte) (row.Value, error) {
	wrong := fmt.Errorf("%x is no DECIMAL of Phoenix of type %s", b, t.Name)
	if len(b) == 1 && b[0] == decimalZero {
		return integerValue(t, new(big.Int))
	}
	if len(b) < 2 || len(b) > 2+phoenixDigits/2+1 {
		return row.Value{}, wrong
	}
	negative := b[0] < decimalZero
	exponent, digits := int(b[0])-positiveExponent, b[1:]
	if negative {
		exponent, digits = negativeExponent-int(b[0]), b[1:len(b)-1]
		if b[len(b)-1] != negativeEnd {
			return row.Value{}, wrong
		}
	}
	n := new(big.Int)
	for _, d := range digits {
		digit := int64(d) - 1
		if negative {
			digit = 101 - int64(d)
		}
		if digit < 0 || digit > 99 {
			return row.Value{}, wrong
		}
		n.Mul(n, big.NewInt(100)).Add(n, big.NewInt(digit))
	}
	shift := 2*(exponent-len(digits)+1) + decimalScale(t)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		n.Mul(n, power)
	} else {
		rest := new(big.Int)
		if n.QuoRem(n, power, rest); rest.Sign() != 0 {
			return row.Value{}, wrong
		}
	}
	if negative {
		n.Neg(n)
	}
	return integerValue(t, n)
}
