package job

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// SaltHash is the function of a salt.
type SaltHash string

// The functions of a salt; MD5 is the zero value.
const (
	SaltMD5     SaltHash = ""
	SaltMurmur3 SaltHash = "murmur3"
	SaltCRC32   SaltHash = "crc32"
	SaltFNV1a   SaltHash = "fnv1a"
	// SaltPhoenix is the hash of Phoenix, over the key behind the salt.
	SaltPhoenix SaltHash = "phoenix"
)

// Salt is a prefix computed from dimensions, see package rowkey. Fields that
// are not set are absent from the job's hash, so that they change none.
type Salt struct {
	// Over are indexes into [Job.Dimensions]; empty for SaltPhoenix alone.
	Over []int
	// Buckets is the number of different salts, 2 to 65536; 0 with a Prefix.
	Buckets int
	// Hash is the function.
	Hash SaltHash `json:",omitempty"`
	// Binary writes bytes and not hexadecimal digits.
	Binary bool `json:",omitempty"`
	// Prefix is how much of the digest's beginning is the salt, in bytes of
	// the key; 0 with Buckets.
	Prefix int `json:",omitempty"`
}

// digest is the size of the hash in bytes.
func (s *Salt) digest() int {
	if s.Hash == SaltMD5 {
		return 16
	}
	return 4
}

// Width is the number of bytes of the salt in a key.
func (s *Salt) Width() int {
	switch {
	case s.Prefix > 0:
		return s.Prefix
	case !s.Binary:
		return len(strconv.FormatInt(int64(s.Buckets-1), 16))
	case s.Buckets <= 256:
		return 1
	}
	return 2
}

// Check refuses values that do not go together. Its errors have class Usage.
func (s *Salt) Check() error {
	longest := s.digest()
	if !s.Binary {
		longest *= 2
	}
	switch {
	case !slices.Contains([]SaltHash{SaltMD5, SaltMurmur3, SaltCRC32, SaltFNV1a, SaltPhoenix}, s.Hash):
		return saltError("write md5, murmur3, crc32, fnv1a or phoenix", "the hash %q is unknown", s.Hash)
	case s.Hash == SaltPhoenix:
		return s.checkPhoenix()
	case len(s.Over) == 0:
		return saltError("list the dimensions that readers know", "it is over no dimension")
	case s.Prefix != 0 && s.Buckets != 0:
		return saltError("keep one of the two", "buckets and prefix exclude each other")
	case s.Prefix == 0 && s.Buckets == 0:
		return saltError("write buckets: 64, or prefix: 2 for the beginning of the digest", "neither buckets nor prefix")
	case s.Prefix < 0 || s.Prefix > longest:
		return saltError("", "prefix is %d, not in 1 to %d: the digest is no longer", s.Prefix, longest)
	case s.Prefix == 0 && (s.Buckets < 2 || s.Buckets > 65536):
		return saltError("", "buckets is %d, not in 2 to 65536", s.Buckets)
	}
	return nil
}

func (s *Salt) checkPhoenix() error {
	switch {
	case len(s.Over) > 0:
		return saltError("remove over", "hash: phoenix is over all of the key behind it")
	case s.Prefix != 0 || !s.Binary:
		return saltError("write {hash: phoenix, buckets: 16}", "hash: phoenix is one byte")
	case s.Buckets < 2 || s.Buckets > 256:
		return saltError("write what SALT_BUCKETS of the table is", "buckets is %d, not in 2 to 256", s.Buckets)
	}
	return nil
}

func saltError(remedy, format string, args ...any) error {
	return failure.New(failure.Usage, fmt.Errorf(format, args...), remedy)
}

// Describe says what the salt is; two salts that differ say different things.
func (s *Salt) Describe() string {
	text := fmt.Sprintf("salt of %d buckets over %v", s.Buckets, s.Over)
	if s.Prefix > 0 {
		text = fmt.Sprintf("salt of a prefix of %d over %v", s.Prefix, s.Over)
	}
	if s.Hash != SaltMD5 {
		text += ", " + string(s.Hash)
	}
	if s.Binary {
		text += ", binary"
	}
	return text
}
