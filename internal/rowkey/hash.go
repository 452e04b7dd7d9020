package rowkey

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// hash is what {salt} or {md5:…} writes.
type hash struct {
	function job.SaltHash
	// over are dimensions. Phoenix's hash is over all that follows instead.
	over []int
	// buckets is the divisor; 0 takes the beginning of the digest.
	buckets uint64
	binary  bool
	width   int
}

func hashToken(p part, h *hash) token {
	t := token{part: p, kind: tokHash, hash: h, width: h.width, first: setOf(hexLower), rest: setOf(hexLower)}
	if h.binary {
		t.first, t.rest = allBytes(), allBytes()
	}
	return t
}

// salt is the token of {salt}, or nil.
func (c *Codec) salt() *token {
	i := slices.IndexFunc(c.tokens, func(t token) bool { return t.kind == tokHash && t.field == "salt" })
	if i < 0 {
		return nil
	}
	return &c.tokens[i]
}

func (c *Codec) compileSalt(p part) (token, error) {
	s := c.config.Salt
	switch {
	case s == nil:
		return token{}, templateError(c.config.Template, p.column, "{salt} has no definition", "add salt: {over: [dimension], buckets: 64} under hbase")
	case c.salt() != nil:
		return token{}, templateError(c.config.Template, p.column, "a second {salt}", "one is enough")
	case s.Hash == job.SaltPhoenix && p.column > 1:
		return token{}, templateError(c.config.Template, p.column, "a salt of Phoenix is over all that follows, and the first byte of the key", "begin the template with {salt}")
	}
	return hashToken(p, &hash{function: s.Hash, over: s.Over, buckets: uint64(s.Buckets), binary: s.Binary, width: s.Width()}), nil
}

// compileMD5 makes the token of {md5:a,b}.
func (c *Codec) compileMD5(p part) (token, error) {
	h := &hash{function: job.SaltMD5, width: 2 * md5.Size}
	for name := range strings.SplitSeq(p.form, ",") {
		name = strings.TrimSpace(name)
		dim := slices.IndexFunc(c.config.Dims, func(d Dim) bool { return d.Name == name })
		if dim < 0 || slices.Contains(h.over, dim) {
			return token{}, templateError(c.config.Template, p.column, p.text()+" needs the names of dimensions, each once",
				"write {md5:a} or {md5:a,b}; the dimensions are "+strings.Join(c.names()[len(builtins):len(builtins)+len(c.config.Dims)], ", "))
		}
		h.over = append(h.over, dim)
	}
	return hashToken(p, h), nil
}

// checkSaltConfig refuses what a salt cannot be made of.
func (c *Codec) checkSaltConfig() error {
	s := c.config.Salt
	if s == nil {
		return nil
	}
	if err := s.Check(); err != nil {
		return usage(failure.Remedy(err), "salt: %w", err)
	}
	for i, d := range s.Over {
		if d < 0 || d >= len(c.config.Dims) {
			return usage("", "salt: there is no dimension number %d", d)
		}
		if slices.Contains(s.Over[:i], d) {
			return usage("name it once", "salt: dimension %s is listed twice", c.config.Dims[d].Name)
		}
	}
	return nil
}

// putHashes writes the hashes of a finished key at their places, the last one
// first: a salt of Phoenix is over the others.
func (c *Codec) putHashes(key []byte, places []int, spans []span) {
	next := len(places) - 1
	for i := len(c.tokens) - 1; next >= 0; i-- {
		t := &c.tokens[i]
		if t.kind != tokHash {
			continue
		}
		at := places[next]
		next--
		dst := key[at : at+t.width]
		if t.hash.function == job.SaltPhoenix {
			dst[0] = phoenixSalt(key[at+t.width:], t.hash.buckets)
			continue
		}
		var buf [256]byte
		t.hash.write(dst, t.hash.input(buf[:0], key, spans))
	}
}

// input joins the fields by zero bytes; a single one is not copied.
func (h *hash) input(buf, key []byte, spans []span) []byte {
	first := spans[h.over[0]]
	if len(h.over) == 1 {
		return key[first.from:first.to]
	}
	buf = append(buf, key[first.from:first.to]...)
	for _, d := range h.over[1:] {
		buf = append(buf, 0)
		buf = append(buf, key[spans[d].from:spans[d].to]...)
	}
	return buf
}

// write fills dst with the hash of the input.
func (h *hash) write(dst, input []byte) {
	var digest [md5.Size]byte
	var n uint64
	switch h.function {
	case job.SaltMurmur3:
		n = uint64(murmur3(input))
	case job.SaltCRC32:
		n = uint64(crc(input))
	case job.SaltFNV1a:
		n = uint64(fnv1a(input))
	default:
		digest = md5.Sum(input)
		n = binary.BigEndian.Uint64(digest[:])
	}
	if h.buckets > 0 {
		writeNumber(dst, n%h.buckets, h.binary)
		return
	}
	if h.function != job.SaltMD5 {
		binary.BigEndian.PutUint32(digest[:], uint32(n))
	}
	if h.binary {
		copy(dst, digest[:])
		return
	}
	for i := range dst {
		dst[i] = hexLower[digest[i/2]>>(4-i%2*4)&15]
	}
}

// writeNumber fills dst with the lowest digits of n.
func writeNumber(dst []byte, n uint64, asBytes bool) {
	for i := len(dst) - 1; i >= 0; i-- {
		if asBytes {
			dst[i] = byte(n)
			n >>= 8
			continue
		}
		dst[i] = hexLower[n&15]
		n >>= 4
	}
}

// crc is the CRC-32 of IEEE 802.3. The function of hash/crc32 is reached by a
// pointer, which would move its input to the heap.
func crc(b []byte) uint32 {
	h := ^uint32(0)
	for _, c := range b {
		h = crc32.IEEETable[byte(h)^c] ^ h>>8
	}
	return ^h
}

// fnv1a is the 32-bit FNV-1a; that of package hash/fnv allocates.
func fnv1a(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

// murmur3 is MurmurHash3 x86_32 with the seed 0.
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := uint32(0)
	rest := b
	for ; len(rest) >= 4; rest = rest[4:] {
		h ^= bits.RotateLeft32(binary.LittleEndian.Uint32(rest)*c1, 15) * c2
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	tail := uint32(0)
	for i, c := range rest {
		tail |= uint32(c) << (8 * i)
	}
	h ^= bits.RotateLeft32(tail*c1, 15) * c2
	h ^= uint32(len(b))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// phoenixSalt is the salt byte of Phoenix over the key that follows it.
func phoenixSalt(key []byte, buckets uint64) byte {
	h := int32(1)
	for _, c := range key {
		h = 31*h + int32(int8(c))
	}
	n := h % int32(buckets)
	return byte(max(n, -n))
}

// maxSplits bounds the regions that a prefix of a digest gives by itself.
const maxSplits = 65536

// Splits gives the keys at which the regions of a new table begin, after the
// first: one region a salt bucket, or as many of equal width as regions says,
// if that is fewer. regions ≤ 0 means no maximum. A prefix of a digest counts
// as 65,536 buckets if it has as many values. It is empty when the key does
// not begin with the salt.
func (c *Codec) Splits(regions int) [][]byte {
	prefix, ok := c.saltPrefix()
	if !ok {
		return nil
	}
	h := c.salt().hash
	values, width := h.leading()
	if regions <= 0 || regions > values {
		regions = values
	}
	var out [][]byte
	for i := 1; i < regions; i++ {
		key := make([]byte, len(prefix)+width)
		copy(key, prefix)
		writeNumber(key[len(prefix):], uint64(i)*uint64(values)/uint64(regions), h.binary)
		out = append(out, key)
	}
	return out
}

// leading is the number of values of the first width bytes of the hash.
func (h *hash) leading() (values, width int) {
	if h.buckets > 0 {
		return int(h.buckets), h.width
	}
	values, base := 1, 16
	if h.binary {
		base = 256
	}
	for width < h.width && values < maxSplits {
		values *= base
		width++
	}
	return values, width
}

// saltPrefix is the literal in front of a salt that begins the key.
func (c *Codec) saltPrefix() (string, bool) {
	switch s := c.salt(); {
	case s == nil:
	case s == &c.tokens[0]:
		return "", true
	case s == &c.tokens[1] && c.tokens[0].kind == tokLiteral:
		return c.tokens[0].literal, true
	}
	return "", false
}

// saltNotes warns of levels whose rows have one salt.
func (c *Codec) saltNotes() []string {
	var out []string
	for i, l := range c.config.Levels {
		over := c.config.Salt.Over
		if len(over) > 0 && !slices.ContainsFunc(over, func(d int) bool { return c.position[i][d] >= 0 }) {
			out = append(out, fmt.Sprintf("level %q has no dimension of the salt: all its rows go to one bucket", l.Code))
		}
	}
	if _, ok := c.saltPrefix(); !ok {
		out = append(out, "{salt} is not at the beginning of the row key: it spreads nothing and gives no pre-splits")
	}
	return out
}
