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
//	{dim:be4}      big-endian, 4 or 8 bytes: Bytes.toBytes(int), Bytes.toBytes(long);
//	{dim:be8}      keys sort as the values do where no value is negative
//	{dim:be4s}     the same with the sign bit flipped: keys sort as the values do,
//	{dim:be8s}     negative ones too (Phoenix INTEGER, BIGINT)
//	{date}         business date, yyyy-MM-dd
//	{date:yyyyMMdd}
//	{lvl} {tp}     the level's code, the period's name
//	{salt}         see below
//
// A level without one of the dimensions writes it as nothing: no bytes where
// the width varies, zero bytes (digits '0' for the zero-padded form) where it
// is fixed.
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
// (their first field; nothing else) by a zero byte, take the first 8 bytes of
// the MD5 as a big-endian unsigned number, modulo the number of buckets B, in
// lower-case hex, zero-padded to the width of B-1. For one dimension written
// as text, B = 64:
//
//	Java:   String.format("%02x", Long.remainderUnsigned(ByteBuffer.wrap(
//	            MessageDigest.getInstance("MD5").digest(Bytes.toBytes("42"))).getLong(), 64))
//	Python: '%02x' % (int.from_bytes(hashlib.md5(b'\0'.join([b'42'])).digest()[:8], 'big') % 64)
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
//
// # Errors
//
// Errors of Compile and CompileCells have class Usage (the job file is wrong),
// those of values Source (the data do not fit the job), both with a remedy.
package rowkey
