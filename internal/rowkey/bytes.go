package rowkey

// byteSet is a set of bytes.
type byteSet [4]uint64

func setOf(s string) byteSet {
	var b byteSet
	b.add(s)
	return b
}

func allBytes() byteSet { return byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

func (b *byteSet) add(s string) {
	for i := range len(s) {
		b[s[i]>>6] |= 1 << (s[i] & 63)
	}
}

func (b byteSet) has(c byte) bool { return b[c>>6]&(1<<(c&63)) != 0 }

func (b byteSet) or(o byteSet) byteSet {
	for i := range b {
		b[i] |= o[i]
	}
	return b
}

func (b byteSet) meets(o byteSet) bool {
	for i := range b {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

const (
	digits     = "0123456789"
	hexUpper   = "0123456789ABCDEF"
	hexLower   = "0123456789abcdef"
	unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits + "-._~"
)

// escaped is the alphabet of the percent-encoding of texts over b.
func (b byteSet) escaped() byteSet {
	plain := setOf(unreserved)
	var out byteSet
	escapes := false
	for i := range b {
		out[i] = b[i] & plain[i]
		escapes = escapes || b[i]&^plain[i] != 0
	}
	if escapes {
		out.add("%" + hexUpper)
	}
	return out
}

// inverted is the alphabet of the inverted bytes.
func (b byteSet) inverted() byteSet {
	var out byteSet
	for c := range 256 {
		if b.has(byte(c)) {
			out.add(string([]byte{^byte(c)}))
		}
	}
	return out
}
