package rowkey

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// fits says whether an integer, or a date or time as its number of days or
// ticks, is one of those that a big-endian token holds.
func (t *token) fits(v *row.Value) bool {
	unused := 64 - 8*t.width
	switch {
	case v.Kind == row.UInt && t.form == formBESigned:
		return v.Num <= math.MaxInt64>>unused
	case v.Kind == row.UInt:
		return v.Num <= math.MaxUint64>>unused
	case v.Kind != row.Int && t.form == formBE: // days and ticks are read back as unsigned
		return int64(v.Num) >= 0 && v.Num <= math.MaxUint64>>unused
	}
	return int64(v.Num)<<unused>>unused == int64(v.Num)
}

func (c *Codec) appendBigEndian(dst []byte, t *token, v *row.Value) ([]byte, error) {
	if !t.fits(v) {
		remedy := "use the text form or be8"
		if v.Kind != row.UInt && int64(v.Num) < 0 {
			remedy = "use {" + t.field + ":be8s}"
		}
		return nil, badValue(remedy, "the value %s of %s does not fit %s", c.formats[t.dim].text(nil, v), c.subject(t), t.text())
	}
	n := v.Num << (64 - 8*t.width)
	if t.form == formBESigned {
		n ^= signBit
	}
	for range t.width {
		dst = append(dst, byte(n>>56))
		n <<= 8
	}
	return dst, nil
}

func parseBigEndian(t *token, d *Dim, text []byte) (row.Value, error) {
	if len(text) != t.width {
		return row.Value{}, errNotAKey
	}
	var n uint64
	for _, b := range text {
		n = n<<8 | uint64(b)
	}
	unused := 64 - 8*t.width
	if t.form == formBESigned {
		n ^= signBit >> unused
	}
	if t.form == formBESigned || d.Type.Kind == row.Int {
		n = uint64(int64(n<<unused) >> unused)
	}
	return row.Value{Kind: d.Type.Kind, Num: n}, nil
}

func (c *Codec) appendPadded(dst []byte, t *token, v *row.Value) ([]byte, error) {
	from, n := len(dst), v.Num
	dst = appendZeros(dst, t.width, '0')
	for i := len(dst) - 1; i >= from && n > 0; i-- {
		dst[i] += byte(n % 10)
		n /= 10
	}
	if n > 0 || v.Kind != row.UInt && int64(v.Num) < 0 {
		number := strconv.FormatInt(int64(v.Num), 10)
		if v.Kind == row.UInt {
			number = strconv.FormatUint(v.Num, 10)
		}
		return nil, badValue("use a wider field, or {"+t.field+":be8s} for values that may be negative",
			"the value %s of %s does not fit %s", number, c.subject(t), t.text())
	}
	return dst, nil
}

func parsePadded(d *Dim, text []byte) (row.Value, error) {
	if d.Type.Kind == row.UInt {
		n, err := strconv.ParseUint(string(text), 10, bitsOf(d.Type))
		return row.Value{Kind: d.Type.Kind, Num: n}, plain(err)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return row.Value{Kind: d.Type.Kind, Num: uint64(n)}, plain(err)
}

const (
	plainNaN32 = 0x7fc00000
	signBit32  = 1 << 31
)

// appendFloat writes bits that sort as the numbers do: a positive number with
// its sign bit set, a negative one with all bits inverted. The value is not a
// NaN with a payload.
func appendFloat(dst []byte, t *token, v *row.Value) []byte {
	if t.width == 8 {
		return binary.BigEndian.AppendUint64(dst, sortable(v.Num))
	}
	bits := plainNaN32 | uint32(v.Num>>63)<<31
	if x := math.Float64frombits(v.Num); !math.IsNaN(x) {
		bits = math.Float32bits(float32(x))
	}
	return binary.BigEndian.AppendUint32(dst, bits^(uint32(int32(bits)>>31)|signBit32))
}

func parseFloat(t *token, text []byte) (row.Value, error) {
	if len(text) != t.width {
		return row.Value{}, errNotAKey
	}
	if t.width == 8 {
		return row.Value{Kind: row.Float, Num: unsortable(binary.BigEndian.Uint64(text))}, nil
	}
	n := binary.BigEndian.Uint32(text)
	n ^= uint32(^int32(n)>>31) | signBit32
	x := math.Float32frombits(n)
	if x != x { // the sign of a NaN that is converted is the processor's affair
		return row.Value{Kind: row.Float, Num: plainNaN | uint64(n>>31)<<63}, nil
	}
	return row.Value{Kind: row.Float, Num: math.Float64bits(float64(x))}, nil
}
