import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.zip.CRC32;
import org.apache.hadoop.hbase.util.ByteArrayHashKey;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Hash;
import org.apache.hadoop.hbase.util.MD5Hash;
import org.apache.hadoop.hbase.util.Order;
import org.apache.hadoop.hbase.util.OrderedBytes;
import org.apache.hadoop.hbase.util.SimplePositionedMutableByteRange;
import org.apache.phoenix.schema.SaltingUtil;
import org.apache.phoenix.schema.SortOrder;
import org.apache.phoenix.schema.types.*;

/**
 * Prints one vector a line: a template with the dimension d, or cell and an encoding; the
 * ClickHouse type; the value as text; the expected bytes in hex; separated by tabs.
 */
public class Forms {
  static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  static final Random RANDOM = new Random(20261130);

  interface Encode { int to(SimplePositionedMutableByteRange r, Order o); }

  static void line(String what, String type, String input, byte[] bytes) {
    OUT.println(what + "\t" + type + "\t" + input + "\t" + Bytes.toHex(bytes));
  }

  /** OrderedBytes begins with a byte that is a literal of the template. */
  static void ordered(String form, String type, String input, Encode e) {
    for (Order o : new Order[] {Order.ASCENDING, Order.DESCENDING}) {
      SimplePositionedMutableByteRange r = new SimplePositionedMutableByteRange(16);
      byte[] bytes = Arrays.copyOf(r.getBytes(), e.to(r, o));
      String mod = o == Order.ASCENDING ? "" : "desc:";
      line(String.format("\\x%02x{d:%s%s}", bytes[0] & 0xff, mod, form), type, input, bytes);
    }
  }

  /** A value of Phoenix in a key, both ways, and in a cell. */
  static void phoenix(PDataType<?> t, String name, String type, String input, Object v) {
    byte[] bytes = t.toBytes(v);
    line("{d:phoenix_" + name + "}", type, input, bytes);
    line("{d:desc:phoenix_" + name + "}", type, input, t.toBytes(v, SortOrder.DESC));
    line("cell phoenix_" + name, type, input, bytes);
  }

  public static void main(String[] args) throws Exception {
    OUT.println("# Made by testdata/golden: hbase-common 2.6.4-hadoop3, phoenix-core-client 5.2.1, jackson-databind 2.14.1.");
    integers();
    floats();
    dates();
    texts();
    salts();
    phoenixDecimals();
    phoenixSalts();
    plain();
    more();
    packed();
  }

  static void integers() {
    long[] fixed = {0, 1, -1, 42, 127, -128, 255, 256, 32767, -32768, Integer.MAX_VALUE, Integer.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE};
    for (long v : fixed) integer(v);
    for (int i = 0; i < 12; i++) integer(RANDOM.nextLong() >> RANDOM.nextInt(64));
  }

  static void integer(long v) {
    String s = Long.toString(v);
    ordered("be8s", "Int64", s, (r, o) -> OrderedBytes.encodeInt64(r, v, o));
    line("{d:desc:be8s}", "Int64", s, Bytes.toBytes(Long.MAX_VALUE - v));
    line("{d:rev:be8}", "Int64", s, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(v).array());
    phoenix(PLong.INSTANCE, "bigint", "Int64", s, v);
    if (v >= 0) {
      line("{d:desc:be8}", "UInt64", s, Bytes.toBytes(~v));
      phoenix(PUnsignedLong.INSTANCE, "unsigned_long", "UInt64", s, v);
    }
    if (v == (int) v) {
      ordered("be4s", "Int32", s, (r, o) -> OrderedBytes.encodeInt32(r, (int) v, o));
      phoenix(PInteger.INSTANCE, "integer", "Int32", s, (int) v);
    }
    if (v == (short) v) {
      ordered("be2s", "Int16", s, (r, o) -> OrderedBytes.encodeInt16(r, (short) v, o));
      line("{d:be2}", "Int16", s, Bytes.toBytes((short) v));
    }
    if (v == (byte) v) {
      ordered("be1s", "Int8", s, (r, o) -> OrderedBytes.encodeInt8(r, (byte) v, o));
      line("{d:be1}", "Int8", s, new byte[] {(byte) v});
    }
  }

  static void floats() {
    double[] fixed = {0, -0.0, 1, -1, 0.1, -0.1, 1e300, Double.MIN_VALUE, -Double.MIN_VALUE, Double.MAX_VALUE, -Double.MAX_VALUE,
        Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.NaN};
    for (double v : fixed) real(v);
    for (int i = 0; i < 12; i++) real(RANDOM.nextGaussian() * Math.pow(10, RANDOM.nextInt(40) - 20));
    float[] singles = {0, -0f, 1, -1, 0.1f, -0.1f, Float.MIN_VALUE, -Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.NaN, 16777217f, -3.5e-20f};
    for (float v : singles) ordered("float4", "Float32", Float.toString(v), (r, o) -> OrderedBytes.encodeFloat32(r, v, o));
  }

  static void real(double v) {
    ordered("float8", "Float64", Double.toString(v), (r, o) -> OrderedBytes.encodeFloat64(r, v, o));
    phoenix(PDouble.INSTANCE, "double", "Float64", Double.toString(v), v);
  }

  static void dates() {
    for (String s : new String[] {"1970-01-01", "1969-12-31", "1900-01-01", "2000-02-29", "2026-11-30", "2299-12-31"}) {
      LocalDate d = LocalDate.parse(s);
      int day = (int) d.toEpochDay();
      line("{d:be4s}", "Date32", s, Bytes.toBytes(day ^ Integer.MIN_VALUE));
      line("{d:desc:be4s}", "Date32", s, Bytes.toBytes(Integer.MAX_VALUE - day));
      if (day >= 0) {
        line("{d:be4}", "Date32", s, Bytes.toBytes(day));
        line("{d:06}", "Date32", s, Bytes.toBytes(String.format("%06d", day)));
      }
      for (String p : new String[] {"yyyyMMdd", "dd.MM.yyyy", "yyyy/MM/dd", "MM dd_yyyy"}) {
        line("{d:" + p + "}", "Date32", s, Bytes.toBytes(d.format(DateTimeFormatter.ofPattern(p))));
      }
      line("{d:rev:yyyyMMdd}", "Date32", s, Bytes.toBytes(new StringBuilder(d.format(DateTimeFormatter.BASIC_ISO_DATE)).reverse().toString()));
      phoenix(PDate.INSTANCE, "date", "Date32", s, new Date(d.atStartOfDay(ZoneOffset.UTC).toInstant().toEpochMilli()));
    }
    for (String s : new String[] {"1970-01-01 00:00:00.000", "1969-12-31 23:59:59.999", "2026-11-30 12:34:56.789"}) {
      Instant at = Instant.parse(s.replace(' ', 'T') + "Z");
      line("{d:be8s}", "DateTime64(3)", s, Bytes.toBytes(at.toEpochMilli() ^ Long.MIN_VALUE));
      line("{d:desc:be8s}", "DateTime64(3)", s, Bytes.toBytes(Long.MAX_VALUE - at.toEpochMilli()));
      phoenix(PDate.INSTANCE, "date", "DateTime64(3)", s, new Date(at.toEpochMilli()));
    }
    for (String s : new String[] {"1970-01-01 00:00:00.000000000", "1969-12-31 23:59:59.999999999", "2026-11-30 12:34:56.789012345"}) {
      phoenix(PTimestamp.INSTANCE, "timestamp", "DateTime64(9)", s, Timestamp.from(Instant.parse(s.replace(' ', 'T') + "Z")));
    }
    for (String s : new String[] {"1970-01-01 00:00:00", "2026-11-30 12:34:56", "2106-02-07 06:28:15"}) {
      Instant at = Instant.parse(s.replace(' ', 'T') + "Z");
      line("{d:be8}", "DateTime", s, Bytes.toBytes(at.getEpochSecond()));
      line("{d:be4}", "DateTime", s, Bytes.toBytes((int) at.getEpochSecond()));
      phoenix(PDate.INSTANCE, "date", "DateTime", s, new Date(at.toEpochMilli()));
      phoenix(PTimestamp.INSTANCE, "timestamp", "DateTime", s, Timestamp.from(at));
    }
  }

  static void texts() {
    for (String s : new String[] {"a", "app", "a|b", "1000"}) {
      line("{d:rev}", "String", s, Bytes.toBytes(new StringBuilder(s).reverse().toString()));
    }
    for (String s : new String[] {"0", "42", "-42", "1000"}) {
      line("{d:rev}", "Int64", s, Bytes.toBytes(new StringBuilder(s).reverse().toString()));
    }
    line("{d:rev:010}", "UInt64", "42", Bytes.toBytes(new StringBuilder(String.format("%010d", 42)).reverse().toString()));
    for (String s : new String[] {"", "42", "app", "\u5e97\u94fa"}) {
      line("{md5:d}{d}", "String", s, Bytes.toBytes(MD5Hash.getMD5AsHex(Bytes.toBytes(s)) + s));
    }
    for (String s : new String[] {"a", "app", "a|b", "\u5e97\u94fa"}) {
      phoenix(PVarchar.INSTANCE, "varchar", "String", s, s);
    }
  }

  /** In place of the type: hash, form, and buckets or prefix; in place of the value: the fields in hex. */
  static void salts() throws Exception {
    String[][] all = {{"42"}, {"7", "app"}, {"abc", "x", "yz"}, {"\u5e97\u94fa"}, {"1000000"}, {"a", "\u00ff\u00fe"}};
    for (String hash : new String[] {"md5", "murmur3", "crc32", "fnv1a"}) {
      for (String[] fields : all) {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        StringBuilder input = new StringBuilder();
        for (int i = 0; i < fields.length; i++) {
          if (i > 0) joined.write(0);
          joined.write(Bytes.toBytes(fields[i]));
          input.append(i > 0 ? " " : "").append(Bytes.toHex(Bytes.toBytes(fields[i])));
        }
        byte[] digest = digest(hash, joined.toByteArray());
        String hex = Bytes.toHex(digest);
        for (int n : new int[] {1, 2, 4, digest.length}) {
          line("salt", hash + " binary prefix " + n, input.toString(), Arrays.copyOf(digest, n));
          line("salt", hash + " hex prefix " + n, input.toString(), Bytes.toBytes(hex.substring(0, n)));
        }
        long number = digest.length == 4 ? Bytes.toInt(digest) & 0xffffffffL : Bytes.toLong(digest);
        for (int buckets : new int[] {2, 17, 256, 1000, 65536}) {
          int bucket = (int) Long.remainderUnsigned(number, buckets);
          int width = Integer.toHexString(buckets - 1).length();
          line("salt", hash + " hex buckets " + buckets, input.toString(), Bytes.toBytes(String.format("%0" + width + "x", bucket)));
          line("salt", hash + " binary buckets " + buckets, input.toString(),
              buckets <= 256 ? new byte[] {(byte) bucket} : Bytes.toBytes((short) bucket));
        }
      }
    }
  }

  static byte[] digest(String hash, byte[] in) throws Exception {
    switch (hash) {
      case "md5":
        return MessageDigest.getInstance("MD5").digest(in);
      case "murmur3":
        return Bytes.toBytes(Hash.getInstance(Hash.MURMUR_HASH3).hash(new ByteArrayHashKey(in, 0, in.length), 0));
      case "crc32":
        CRC32 crc = new CRC32();
        crc.update(in);
        return Bytes.toBytes((int) crc.getValue());
    }
    int h = 0x811c9dc5; // FNV-1a is in no class of HBase's
    for (byte b : in) h = (h ^ (b & 0xff)) * 0x01000193;
    return Bytes.toBytes(h);
  }

  static void phoenixDecimals() {
    String[] all = {"0.00", "1.00", "-1.00", "1.50", "-1.50", "0.01", "-0.01", "0.10", "10.00", "99.00", "100.00", "-100.00", "12345.67", "-12345.67", "1000000.00",
        "999999999999999999999999999999999999.99", "-999999999999999999999999999999999999.99"};
    for (String s : all) phoenix(PDecimal.INSTANCE, "decimal", "Decimal(38, 2)", s, new BigDecimal(s));
    for (String s : new String[] {"0.000001", "0.000010", "-0.123457", "12.345678"}) phoenix(PDecimal.INSTANCE, "decimal", "Decimal(18, 6)", s, new BigDecimal(s));
    for (String s : new String[] {"0.001", "0.010", "-0.123", "12.345", "100.100"}) phoenix(PDecimal.INSTANCE, "decimal", "Decimal(18, 3)", s, new BigDecimal(s));
    for (String s : new String[] {"0", "7", "-7", "10", "1000", "18446744073709551615", "-99"}) phoenix(PDecimal.INSTANCE, "decimal", "Int128", s, new BigDecimal(s));
  }

  static void phoenixSalts() {
    for (int i = 0; i < 20; i++) {
      long v = RANDOM.nextLong() >> RANDOM.nextInt(64);
      for (int buckets : new int[] {2, 16, 100, 256}) {
        byte[] key = Bytes.add(new byte[1], PLong.INSTANCE.toBytes(v));
        key[0] = SaltingUtil.getSaltingByte(key, 1, key.length - 1, buckets);
        line("{salt}{d:phoenix_bigint}", "Int64 " + buckets, Long.toString(v), key);
      }
    }
  }

  /** Forms of text and of unsigned numbers, in keys and in cells. */
  static void plain() throws Exception {
    for (String s : new String[] {"0", "1", "42", "18446744073709551615"}) {
      line("{d}", "UInt64", s, Bytes.toBytes(new BigInteger(s).toString()));
      line("{d:be8}", "UInt64", s, Bytes.toBytes(Long.parseUnsignedLong(s)));
      line("cell text", "UInt64", s, Bytes.toBytes(new BigInteger(s).toString()));
      line("{d:020}", "UInt64", s, padded(s, 20));
      line("{d:desc:020}", "UInt64", s, inverted(padded(s, 20)));
    }
    for (String s : new String[] {"0", "-1", "-9223372036854775808", "9223372036854775807"}) {
      line("{d}", "Int64", s, Bytes.toBytes(Long.toString(Long.parseLong(s))));
      line("cell text", "Int64", s, Bytes.toBytes(Long.toString(Long.parseLong(s))));
      line("{d:be8}", "Int64", s, Bytes.toBytes(Long.parseLong(s)));
    }
    for (String s : new String[] {"-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "10000000000000000000"}) {
      line("{d}", "Int128", s, Bytes.toBytes(new BigInteger(s).toString()));
      line("cell text", "Int128", s, Bytes.toBytes(new BigInteger(s).toString()));
    }
    for (String s : new String[] {"0.00", "-0.05", "123.40", "-12345678901234567890123456789012345.67"}) {
      line("{d}", "Decimal(38, 2)", s, Bytes.toBytes(new BigDecimal(s).toPlainString()));
      line("cell text", "Decimal(38, 2)", s, Bytes.toBytes(new BigDecimal(s).toPlainString()));
    }
    for (String s : new String[] {"app", "a|b", "a b/c%*+~-._'()", "\u5e97\u94fa", "\ud83d\uded2\u007f"}) {
      line("{d}", "String", s, Bytes.toBytes(s));
      line("{d:esc}", "String", s, Bytes.toBytes(percent(s)));
      line("{d:rev:esc}", "String", s, Bytes.toBytes(new StringBuilder(percent(s)).reverse().toString()));
      line("cell text", "String", s, Bytes.toBytes(s));
    }
    for (String s : new String[] {"1970-01-01", "2000-02-29", "2299-12-31"}) {
      line("{d}", "Date32", s, Bytes.toBytes(LocalDate.parse(s).toString()));
      line("cell text", "Date32", s, Bytes.toBytes(LocalDate.parse(s).toString()));
      byte[] basic = Bytes.toBytes(LocalDate.parse(s).format(DateTimeFormatter.BASIC_ISO_DATE));
      line("{d:desc:yyyyMMdd}", "Date32", s, inverted(basic));
    }
    for (String s : new String[] {"1970-01-01 00:00:00.000", "2026-11-30 12:34:56.789"}) {
      LocalDateTime at = LocalDateTime.parse(s.replace(' ', 'T'));
      byte[] text = Bytes.toBytes(at.format(DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS")));
      line("{d}", "DateTime64(3)", s, text);
      line("cell text", "DateTime64(3)", s, text);
    }
    for (boolean v : new boolean[] {true, false}) {
      line("{d}", "Bool", Boolean.toString(v), Bytes.toBytes(Boolean.toString(v)));
      line("cell text", "Bool", Boolean.toString(v), Bytes.toBytes(Boolean.toString(v)));
    }
    String id = "61f0c404-5cb3-11e7-907b-a6006ad3dba0";
    line("{d}", "UUID", id, Bytes.toBytes(UUID.fromString(id).toString()));
  }

  static byte[] inverted(byte[] b) {
    Order.DESCENDING.apply(b);
    return b;
  }

  static byte[] padded(String s, int width) {
    return Bytes.toBytes(String.format("%" + width + "s", s).replace(' ', '0'));
  }

  /** RFC 3986, of which URLEncoder is four characters away. */
  static String percent(String s) {
    return URLEncoder.encode(s, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }

  /** The widths and directions that are not above. */
  static void more() {
    for (long v : new long[] {0, 1, 127, 128, 255}) {
      line("{d:be1}", "UInt8", Long.toString(v), new byte[] {(byte) v});
      line("{d:desc:be1}", "UInt8", Long.toString(v), inverted(new byte[] {(byte) v}));
    }
    for (long v : new long[] {0, 1, 255, 256, 32768, 65535}) {
      line("{d:be2}", "UInt16", Long.toString(v), Bytes.toBytes((short) v));
      line("{d:desc:be2}", "UInt16", Long.toString(v), inverted(Bytes.toBytes((short) v)));
      line("{d:rev:be2}", "UInt16", Long.toString(v), ByteBuffer.allocate(2).order(ByteOrder.LITTLE_ENDIAN).putShort((short) v).array());
    }
    for (long v : new long[] {0, 1, 65536, 1L << 31, (1L << 32) - 1}) {
      line("{d:be4}", "UInt32", Long.toString(v), Bytes.toBytes((int) v));
      line("{d:desc:be4}", "UInt32", Long.toString(v), inverted(Bytes.toBytes((int) v)));
      line("{d:rev:be4}", "UInt32", Long.toString(v), ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt((int) v).array());
      line("{d:phoenix_unsigned_long}", "UInt32", Long.toString(v), PUnsignedLong.INSTANCE.toBytes(v));
    }
    for (float v : new float[] {0, -0f, 1.5f, -1.5f, 0.1f, Float.MIN_VALUE, -Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NaN}) {
      ordered("float8", "Float32", Float.toString(v), (r, o) -> OrderedBytes.encodeFloat64(r, (double) v, o));
      phoenix(PDouble.INSTANCE, "double", "Float32", Float.toString(v), (double) v);
    }
    for (String s : new String[] {"0", "7", "-7", "9223372036854775807", "-9223372036854775808"}) {
      phoenix(PLong.INSTANCE, "bigint", "Int128", s, Long.parseLong(s));
      phoenix(PDecimal.INSTANCE, "decimal", "Int64", s, new BigDecimal(s));
    }
    phoenix(PDecimal.INSTANCE, "decimal", "UInt64", "18446744073709551615", new BigDecimal("18446744073709551615"));
    for (String s : new String[] {"1970-01-01", "1969-12-31", "2026-11-30"}) {
      long at = LocalDate.parse(s).atStartOfDay(ZoneOffset.UTC).toInstant().toEpochMilli();
      phoenix(PTimestamp.INSTANCE, "timestamp", "Date32", s, new Timestamp(at));
    }
  }

  /** One metric m in a packed cell, as Jackson writes it. */
  static void packed() throws Exception {
    for (String s : new String[] {"0", "18446744073709551615"}) pack("UInt64", s, new BigInteger(s));
    for (String s : new String[] {"0", "-9223372036854775808"}) pack("Int64", s, Long.parseLong(s));
    pack("Int256", "-57896044618658097711785492504343953926634992332820282019728792003956564819968", BigInteger.ONE.shiftLeft(255).negate());
    for (String s : new String[] {"0.00", "-0.05", "123.40", "-12345678901234567890123456789012345.67"}) pack("Decimal(38, 2)", s, new BigDecimal(s));
    for (String s : new String[] {"0.000000000000000000000000000001", "100.000000000000000000000000000000"}) pack("Decimal(38, 30)", s, new BigDecimal(s));
    for (double v : new double[] {0.1, -12.5, 1234567.875, -0.5}) pack("Float64", Double.toString(v), v);
    pack("Float64", "NaN", Double.NaN);
    pack("Float64", "Infinity", Double.POSITIVE_INFINITY);
    pack("Float64", "-Infinity", Double.NEGATIVE_INFINITY);
    pack("Bool", "true", true);
    pack("Bool", "false", false);
    for (String s : new String[] {"", "app", "a|b", "say \"a\\b\"", "\u5e97\u94fa", "\ud83d\uded2", "</script>&'\u007f"}) pack("String", s, s);
    pack("Date32", "2026-11-30", LocalDate.parse("2026-11-30").toString());
    pack("DateTime64(3)", "2026-11-30 12:34:56.789", "2026-11-30 12:34:56.789");
  }

  static void pack(String type, String input, Object v) throws Exception {
    ObjectMapper mapper = new ObjectMapper().enable(JsonGenerator.Feature.WRITE_BIGDECIMAL_AS_PLAIN);
    line("packed", type, input, Bytes.toBytes(mapper.writeValueAsString(Map.of("m", v))));
  }
}
