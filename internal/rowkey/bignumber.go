package rowkey

import (
	"math/big"
	"math/bits"
	"strconv"
)

// math/big writes numbers into memory of its own; what is here writes them
// into the caller's.

// A group of digits is what a word holds: 10^19 < 2^64.
const (
	groupDigits = 19
	groupBase   = 10_000_000_000_000_000_000
)

// appendBig appends a number of at most 256 bits in decimal; for larger ones it
// takes the long way.
func appendBig(dst []byte, x *big.Int) []byte {
	words := x.Bits()
	if bits.UintSize != 64 || len(words) > 4 {
		return x.Append(dst, 10)
	}
	if x.Sign() < 0 {
		dst = append(dst, '-')
	}
	var n [4]uint64
	for i, w := range words {
		n[i] = uint64(w)
	}
	var groups [5]uint64 // the lowest first; 2^256 has 78 digits
	count := 1
	for size := len(words); size > 0; {
		rest := uint64(0)
		for i := size - 1; i >= 0; i-- {
			n[i], rest = bits.Div64(rest, n[i], groupBase)
		}
		groups[count-1] = rest
		for size > 0 && n[size-1] == 0 {
			size--
		}
		if size > 0 {
			count++
		}
	}
	dst = strconv.AppendUint(dst, groups[count-1], 10)
	for i := count - 2; i >= 0; i-- {
		dst = appendZeros(dst, groupDigits, '0')
		for at, g := len(dst)-1, groups[i]; g > 0; at, g = at-1, g/10 {
			dst[at] += byte(g % 10)
		}
	}
	return dst
}

// decimalText appends a number of scale digits after the point.
func decimalText(dst []byte, unscaled *big.Int, scale int) []byte {
	from := len(dst)
	dst = appendBig(dst, unscaled)
	if scale == 0 {
		return dst
	}
	if dst[from] == '-' {
		from++
	}
	if missing := scale + 1 - (len(dst) - from); missing > 0 {
		end := len(dst)
		dst = appendZeros(dst, missing, '0')
		copy(dst[from+missing:], dst[from:end])
		for i := range missing {
			dst[from+i] = '0'
		}
	}
	point := len(dst) - scale
	dst = append(dst, 0)
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

// appendTwosComplement writes an integer in as few bytes as hold it and its
// sign: n is its two's complement of 64 bits.
func appendTwosComplement(dst []byte, n uint64, negative bool) []byte {
	used := bits.Len64(n)
	if negative {
		used = bits.Len64(^n)
	}
	for i := used / 8; i >= 0; i-- { // one bit more, for the sign
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst
}

func appendBigTwosComplement(dst []byte, n *big.Int) []byte {
	used := n.BitLen()
	if n.Sign() < 0 && n.TrailingZeroBits() == uint(used-1) {
		used-- // -2^k needs no more bits than 2^k - 1
	}
	from := len(dst)
	dst = appendZeros(dst, used/8+1, 0)
	n.FillBytes(dst[from:])
	if n.Sign() >= 0 {
		return dst
	}
	carry := true
	for i := len(dst) - 1; i >= from; i-- {
		if dst[i] = ^dst[i]; carry {
			dst[i]++
			carry = dst[i] == 0
		}
	}
	return dst
}
