// Package rowkey turns rows into HBase row keys and cells, and back.
//
// # Templates
//
// A template is literal text and fields in braces. `{{` and `}}` stand for the
// braces themselves, `\\` for a backslash and `\xNN` for the byte NN.
//
//	{dim}          the text form of the dimension's value (table below)
//	{dim:esc}      the text with every byte but A-Z a-z 0-9 - . _ ~ percent-encoded
//	{dim:010}      decimal, zero-padded to 10 digits; a longer or negative value is an error
//	{dim:be8}      big-endian, 1, 2, 4 or 8 bytes (be1, be2, be4, be8): Bytes.toBytes(short),
//	               (int), (long); keys sort as the values do where no value is negative
//	{dim:be8s}     the same with the sign bit flipped (be1s, be2s, be4s, be8s): keys sort as
//	               the values do, negative ones too. With the literal \x29, \x2a, \x2b or \x2c in
//	               front it is OrderedBytes.encodeInt8, 16, 32 or 64.
//	{dim:float8}   8 bytes of a Float64 or Float32, or float4 of a Float32: keys sort as the
//	               values do, -0 before 0, -NaN first, NaN last. With \x31, or \x30 for float4, in front
//	               it is OrderedBytes.encodeFloat64, 32.
//	{dim:yyyyMMdd} a date by pattern: yyyy, MM and dd once each in any order, with - / . _ or a
//	               space between them
//	{dim:phoenix_bigint}  the bytes of a type of Phoenix, see below
//	{metric:desc:be8}  a metric, for the keys' order only: see Rankings
//	{date}         business date, yyyy-MM-dd, or in any form of a Date32 but esc
//	{lvl} {tp}     the level's code, the period's name
//	{salt}         see below
//	{md5:a,b}      32 lower-case hex digits: the MD5 of dimensions as the salt sees them. They must
//	               be in the template by themselves too.
//
// In the forms for integers (zero-padded, be…) a date is the number of days
// since 1970-01-01, and a DateTime or DateTime64(s) the number of its units, which are
// 10^s a second, since then. In be1 to be8 a time before 1970 is an error.
//
// A form of a dimension or date can be changed in front:
//
//	{dim:desc:be8s}  every byte inverted, so that keys sort backwards; in any form of fixed
//	                 width and those of Phoenix. desc:be8s is Bytes.toBytes(Long.MAX_VALUE - v).
//	{dim:rev}        the last byte first, here of the text, or of any form: {dim:rev:010}; {dim:rev:be8} is
//	                 little-endian
//
// NULL's text is written as it is. A level without one of the dimensions writes
// it as nothing: no bytes where the width varies, zero bytes (digits '0' for the
// zero-padded form and dates by pattern), changed by desc, where it is fixed.
//
// # Rankings
//
// A metric in a key sorts the rows, so that "top N" is one Scan with a limit: in
// front what is the same in all rows of a ranking, then the metric, then all other
// dimensions, which break ties: {lvl}|{tp}|{date}|{pv:desc:be8}{shop_id:be8}. The
// form must sort as the metric does, and the metric cannot be NULL. Rows are told
// apart by the dimensions alone: a group has one row, whatever its metrics are. So
// a key is no longer a function of the dimensions: readers who know only these find
// a row by scanning, and an attempt that computes another metric for a group writes
// a second row, which the count of keys shows.
//
// # Text forms
//
// The same in keys and in text cells. "The job's zone" is the time zone of the
// job file.
//
//	Bool             true, false
//	integers         decimal, '-' in front of negatives, no leading zeros
//	Decimal(p, s)    plain, always s digits after the point: -1.50
//	Float            the shortest digits that read back as the same number, 'e' notation
//	                 below 1e-4 and from 1e21 on: 0.1, 1e+21, -0; Infinity, -Infinity, NaN.
//	                 In keys a NaN with the sign bit set is -NaN (GROUP BY keeps the two
//	                 apart) and NaNs with other payloads are errors.
//	String           the bytes as they are
//	FixedString      all bytes, zero padding included
//	UUID, IPv4/6, Enum   the text as ClickHouse prints it
//	Date, Date32     2006-01-02
//	DateTime         2006-01-02 15:04:05 in the job's zone
//	DateTime64(s)    2006-01-02 15:04:05.000, always s digits. Where the clock is put back
//	                 and an hour passes twice, the second pass carries its offset from UTC:
//	                 2026-10-25 02:30:00+01:00
//
// # Salt
//
// The salt is over some dimensions: join their bytes as they stand in the key
// (their first field; nothing else) by a zero byte, and take the digest of one
// of these functions:
//
//	md5       16 bytes; as a number its first 8 bytes
//	murmur3   MurmurHash3 x86_32 with the seed 0, Hash.MURMUR_HASH3 of HBase
//	crc32     java.util.zip.CRC32
//	fnv1a     FNV-1a of 32 bits
//
// With buckets B the salt is the digest as a big-endian unsigned number modulo
// B: in lower-case hex, zero-padded to the width of B-1, or binary in one byte, from
// B = 257 on in two. With a prefix n it is the first n hex digits, or bytes if
// binary, of the digest (of 4 bytes, big-endian, but for md5). For one dimension
// written as text, md5 and B = 64:
//
//	Java:   String.format("%02x", Long.remainderUnsigned(ByteBuffer.wrap(
//	            MessageDigest.getInstance("MD5").digest(Bytes.toBytes("42"))).getLong(), 64))
//	Python: '%02x' % (int.from_bytes(hashlib.md5(b'\0'.join([b'42'])).digest()[:8], 'big') % 64)
//
// The function phoenix gives the first byte of a table with SALT_BUCKETS: it
// is over all of the key behind it.
//
// # Phoenix
//
// The same in keys ({dim:phoenix_bigint}) and cells (encode: phoenix_bigint);
// what a type cannot hold is an error, never wrapped or rounded:
//
//	phoenix_unsigned_long  8 bytes, not negative
//	phoenix_bigint         8 bytes, the sign bit flipped
//	phoenix_integer        4 bytes, the sign bit flipped
//	phoenix_double         8 bytes, as DOUBLE; in a key -NaN is an error
//	phoenix_date           8 bytes: milliseconds since 1970 of a Date's midnight in UTC, or of a
//	                       DateTime with 3 digits of a second or fewer
//	phoenix_timestamp      12 bytes: milliseconds, then the nanoseconds that they leave out
//	phoenix_decimal        1 to 22 bytes, at most 38 digits
//	phoenix_varchar        the bytes of a String; in a key none of them zero
//
// The last two vary in width: Phoenix puts \x00 behind them, \xff behind
// descending ones, and so must a template if keys are to sort.
//
// # Cells
//
//	auto      integers up to 64 bits → int64, Float → float64, Bool → bool, all else → text
//	text      the text form above
//	int64     Bytes.toBytes(long); larger values are errors, never wrapped
//	int32     Bytes.toBytes(int); the same
//	float64   Bytes.toBytes(double)
//	decimal   Bytes.toBytes(BigDecimal): 4 bytes of scale, then the unscaled number
//	bool      Bytes.toBytes(boolean): ff or 00; UInt8 0 and 1 too
//	phoenix_… the types of Phoenix above
//
// Packed, there is one cell for all metrics: a JSON object (RFC 8259, UTF-8,
// without white space) whose members have the metrics' names, in their order:
//
//	integers      a number with all its digits, beyond 2^53 and 2^64 too: readers must not
//	              read it as a double; encode: text makes it a string
//	Decimal(p, s) a number with always s digits after the point: -1.50
//	Float         a number, in the text form above; "NaN", "Infinity" and "-Infinity" are strings
//	Bool          true, false
//	String        a string, with the escapes \" \\ and \u00NN below a space only. Bytes that are
//	              not UTF-8, and texts that begin with hex:, are "hex:" and the hex digits of all bytes
//	all else      a string of the text form
//	NULL          no member (skip), null (empty) or a string (literal)
//
// # Errors
//
// Errors of Compile and CompileCells have class Usage (the job file is wrong),
// those of values Source (the data do not fit the job), both with a remedy.
package rowkey
