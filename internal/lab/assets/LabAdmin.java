import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * What an administrator does to a table, with HBase's own client: orders that
 * tests give and that the Go client has no calls for. It returns when the order
 * has been carried out.
 *
 * <p>Arguments: ZooKeeper's port, then orders, which are carried out one after
 * the other: flush TABLE | major_compact TABLE | split TABLE KEY | move TABLE KEY |
 * durability TABLE VALUE.
 */
public final class LabAdmin {
  private static final long PATIENCE_MS = 60_000;

  private LabAdmin() {}

  public static void main(String[] args) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", "127.0.0.1");
    conf.set("hbase.zookeeper.property.clientPort", args[0]);
    try (Connection connection = ConnectionFactory.createConnection(conf);
        Admin admin = connection.getAdmin()) {
      for (int i = 1; i < args.length; ) {
        String order = args[i++];
        TableName table = TableName.valueOf(args[i++]);
        switch (order) {
          case "flush" -> admin.flush(table);
          case "major_compact" -> majorCompact(admin, table);
          case "split" -> split(admin, table, Bytes.toBytesBinary(args[i++]));
          case "move" -> move(admin, table, Bytes.toBytesBinary(args[i++]));
          case "durability" -> admin.modifyTable(
              TableDescriptorBuilder.newBuilder(admin.getDescriptor(table))
                  .setDurability(Durability.valueOf(args[i++])).build());
          default -> throw new IllegalArgumentException("unknown order " + order);
        }
      }
    }
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void await(String what, Condition c) throws Exception {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (!c.holds()) {
      if (System.currentTimeMillis() > end) {
        throw new IllegalStateException("waited too long for " + what);
      }
      Thread.sleep(50);
    }
  }

  /** Each region server says itself when the files of its regions were written. */
  private static void majorCompact(Admin admin, TableName table) throws Exception {
    long since = System.currentTimeMillis();
    admin.majorCompact(table);
    await("a major compaction", () -> {
      for (ServerName server : admin.getRegionServers()) {
        for (RegionMetrics r : admin.getRegionMetrics(server, table)) {
          if (r.getStoreFileCount() > 0 && r.getLastMajorCompactionTimestamp() < since) {
            return false;
          }
        }
      }
      return true;
    });
  }

  private static void split(Admin admin, TableName table, byte[] key) throws Exception {
    int before = admin.getRegions(table).size();
    admin.split(table, key);
    await("the split", () -> admin.getRegions(table).size() > before && open(admin, table));
  }

  private static boolean open(Admin admin, TableName table) throws Exception {
    return admin.isTableAvailable(table);
  }

  /** The region that holds the key goes to another server. */
  private static void move(Admin admin, TableName table, byte[] key) throws Exception {
    for (ServerName from : admin.getRegionServers()) {
      for (RegionInfo r : admin.getRegions(from)) {
        if (!r.getTable().equals(table) || !r.containsRow(key)) {
          continue;
        }
        List<ServerName> others = new ArrayList<>(admin.getRegionServers());
        others.remove(from);
        admin.move(r.getEncodedNameAsBytes(), others.get(0));
        await("the move", () -> admin.getRegions(others.get(0)).contains(r));
        return;
      }
    }
    throw new IllegalStateException("no region server has the region");
  }
}
