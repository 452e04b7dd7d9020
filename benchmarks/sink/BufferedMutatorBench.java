import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The yardstick: writes the rows of rows.go with HBase's own client, a BufferedMutator with its
 * default settings, shared by some threads.
 * Arguments: quorum host, port, table, rows, cells a row, timestamp, threads.
 */
public class BufferedMutatorBench {
  static final byte[] FAMILY = Bytes.toBytes("f");
  static final String[] SOURCES = {"app", "web", "search", "ads", "mail", "push", "feed", "shop", "live", "other"};
  static final byte[][] HEX = new byte[64][];
  static final long SECOND = 1_000_000_000L;

  static {
    for (int i = 0; i < HEX.length; i++) HEX[i] = Bytes.toBytes(String.format("%02x", i));
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", args[0]);
    conf.set("hbase.zookeeper.property.clientPort", args[1]);
    TableName table = TableName.valueOf(args[2]);
    long rows = Long.parseLong(args[3]);
    int cells = Integer.parseInt(args[4]);
    long timestamp = Long.parseLong(args[5]);
    int threads = Integer.parseInt(args[6]);
    byte[][] qualifiers = new byte[cells][];
    for (int c = 0; c < cells; c++) qualifiers[c] = Bytes.toBytes("m" + c);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      connection.getRegionLocator(table).getAllRegionLocations();
      long start = System.nanoTime();
      try (BufferedMutator mutator = connection.getBufferedMutator(table)) {
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
          long from = rows * t / threads, to = rows * (t + 1) / threads;
          Thread thread = new Thread(() -> write(mutator, qualifiers, from, to, timestamp));
          thread.start();
          all.add(thread);
        }
        for (Thread thread : all) thread.join();
        mutator.flush();
      }
      long nanos = System.nanoTime() - start;
      System.out.printf("{\"rows\": %d, \"seconds\": %.3f}%n", rows, (double) nanos / SECOND);
    }
  }

  static void write(BufferedMutator mutator, byte[][] qualifiers, long from, long to, long timestamp) {
    try {
      MessageDigest md5 = MessageDigest.getInstance("MD5");
      StringBuilder key = new StringBuilder();
      for (long i = from; i < to; i++) {
        String shop = Long.toString(shop(i));
        int bucket = (int) Long.remainderUnsigned(ByteBuffer.wrap(md5.digest(shop.getBytes(StandardCharsets.UTF_8))).getLong(), 64);
        key.setLength(0);
        key.append('|').append(shop).append('|').append(SOURCES[(int) (i % 10)]).append("|BY_LAST_DAYS_30|2026-11-29");
        Put put = new Put(Bytes.add(HEX[bucket], Bytes.toBytes(key.toString())), timestamp);
        for (int c = 0; c < qualifiers.length; c++) put.addColumn(FAMILY, qualifiers[c], cell(i, c));
        mutator.mutate(put);
      }
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  /** A permutation of 32-bit numbers, so that shops come in no order and none twice. */
  static long shop(long i) {
    return (i / 10 * 2654435761L) & 0xffffffffL;
  }

  /** Metrics in turn: a count, a ratio, an amount as text. */
  static byte[] cell(long i, int c) {
    long value = (i * 6364136223846793005L + c * 1442695040888963407L) >>> 40;
    switch (c % 3) {
      case 0: return Bytes.toBytes(value);
      case 1: return Bytes.toBytes((double) value / 1024);
      default: {
        long cents = value % 100;
        return Bytes.toBytes(value / 100 + (cents < 10 ? ".0" : ".") + cents);
      }
    }
  }
}
