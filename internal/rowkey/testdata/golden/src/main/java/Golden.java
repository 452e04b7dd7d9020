import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Random;
import org.apache.hadoop.hbase.util.Bytes;

/** Prints one vector a line: kind, input, expected bytes in hex, separated by tabs. */
public class Golden {
  static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  static void line(String kind, String input, byte[] bytes) {
    OUT.println(kind + "\t" + input + "\t" + Bytes.toHex(bytes));
  }

  public static void main(String[] args) throws Exception {
    OUT.println("# Made by testdata/golden with org.apache.hadoop.hbase.util.Bytes of hbase-common 2.6.4-hadoop3.");
    Random random = new Random(20261129);
    longs(random);
    ints(random);
    doubles(random);
    decimals();
    line("bool", "true", Bytes.toBytes(true));
    line("bool", "false", Bytes.toBytes(false));
    for (String s : new String[] {"", "app", "a|b", "\u5e97\u94fa", "\ud83d\uded2"}) {
      line("string", s, Bytes.toBytes(s));
    }
    salts();
  }

  static void longs(Random random) {
    long[] fixed = {0, 1, -1, 42, 255, 256, 65536, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE};
    for (long v : fixed) oneLong(v);
    for (int i = 0; i < 20; i++) oneLong(random.nextLong() >> random.nextInt(64));
  }

  static void oneLong(long v) {
    line("int64", Long.toString(v), Bytes.toBytes(v));
    line("be8s", Long.toString(v), Bytes.toBytes(v ^ Long.MIN_VALUE));
    line("ube8", Long.toUnsignedString(v), Bytes.toBytes(v));
  }

  static void ints(Random random) {
    int[] fixed = {0, 1, -1, 42, 256, Integer.MAX_VALUE, Integer.MIN_VALUE};
    for (int v : fixed) oneInt(v);
    for (int i = 0; i < 20; i++) oneInt(random.nextInt() >> random.nextInt(32));
  }

  static void oneInt(int v) {
    line("int32", Integer.toString(v), Bytes.toBytes(v));
    line("be4s", Integer.toString(v), Bytes.toBytes(v ^ Integer.MIN_VALUE));
    line("ube4", Integer.toUnsignedString(v), Bytes.toBytes(v));
  }

  static void doubles(Random random) {
    double[] fixed = {0, -0.0, 1, -1, 0.1, 1e300, Double.MIN_VALUE, Double.MAX_VALUE, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.NaN};
    for (double v : fixed) line("float64", Double.toString(v), Bytes.toBytes(v));
    for (int i = 0; i < 20; i++) {
      double v = random.nextGaussian() * Math.pow(10, random.nextInt(40) - 20);
      line("float64", Double.toString(v), Bytes.toBytes(v));
    }
  }

  static void decimals() {
    String[] all = {"0", "0.00", "1", "-1", "1.50", "-1.50", "127", "128", "-128", "-129", "255", "256", "0.000001", "12345678901234567890.1234567890",
        "-99999999999999999999999999999999999999", "32767", "32768", "-32768", "-32769", "0.01", "-0.01"};
    for (String s : all) line("decimal", s, Bytes.toBytes(new BigDecimal(s)));
  }

  /** The salt as a reader in Java computes it: input is buckets, then the fields, each in hex. */
  static void salts() throws Exception {
    String[][] all = {{"42"}, {"7", "app"}, {"", "x"}, {"\u5e97\u94fa"}, {"1000000"}};
    for (int buckets : new int[] {2, 16, 17, 64, 256, 1000, 65536}) {
      for (String[] fields : all) {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        StringBuilder input = new StringBuilder().append(buckets);
        for (int i = 0; i < fields.length; i++) {
          if (i > 0) joined.write(0);
          joined.write(Bytes.toBytes(fields[i]));
          input.append(' ').append(Bytes.toHex(Bytes.toBytes(fields[i])));
        }
        byte[] md5 = MessageDigest.getInstance("MD5").digest(joined.toByteArray());
        long bucket = Long.remainderUnsigned(ByteBuffer.wrap(md5).getLong(), buckets);
        int width = Integer.toHexString(buckets - 1).length();
        line("salt", input.toString(), Bytes.toBytes(String.format("%0" + width + "x", bucket)));
      }
    }
  }
}
