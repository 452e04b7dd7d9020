package job

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

func (d *decoder) hbaseFields(h *HBase) []field {
	var columns *node
	d.after = append(d.after, func() { d.resolveColumns(h, columns) })
	return append([]field{
		{key: "clusters", typ: "list of mappings", required: true, element: d.clusterFields(&HBaseCluster{}), read: d.clusters(h),
			doc: "The HBase clusters to write to, each with the same table."},
		{key: "require", typ: "text", def: "`all`",
			read: func(n *node) {
				if s, ok := d.choice(n, []string{string(RequireAll), string(RequireAny)}, nil); ok {
					h.Require = Require(s)
				}
			},
			doc: "In which of several clusters a run must be published to be a success: `all`, or `any`, at least one; see below."},
		{key: "table", typ: "text", required: true, read: d.hbaseTable(h),
			doc: "The table, made when absent. Letters, digits, `_`, `-`, `.`, behind a namespace and a colon if it has one, which is made when absent too."},
		{key: "family", typ: "text", def: "`f`", read: d.textField(&h.Family, checkFamily),
			doc: "The column family of all cells."},
		{key: "row_key", typ: "text", required: true, read: d.rowKey(h),
			doc: "The row key's template, such as `\"{salt}|{lvl}|{shop_id}|{tp}|{date}\"`; see below."},
		{key: "salt", typ: "mapping", def: "no salt", read: d.salt(h), fields: d.saltFields(&saltNodes{}),
			doc: "What `{salt}` in the row key is computed from."},
		{key: "columns", typ: "mapping of texts", def: "the metrics' names", read: func(n *node) { columns = n },
			doc: "Column qualifier by metric; a metric that is not listed keeps its name."},
		{key: "pack", typ: "text", def: "a cell for each metric", read: d.textField(&h.Pack, checkPlain),
			doc: "The qualifier of one cell that holds all metrics of a row as a JSON object; see below. Not together with `columns`."},
		{key: "create", typ: "mapping", def: "see below", fields: d.createFields(&h.Create),
			doc: "How an absent table is made."},
		{key: "batch", typ: "mapping", def: "see below", fields: d.batchFields(&h.Batch),
			doc: "Bounds of one batch of puts."},
		{key: "rate", typ: "mapping", def: "no cap", fields: d.rateFields(&h.Rate),
			doc: "A cap on what is written in a second, to all region servers together. A `SIGHUP` makes a run read it again. HBase's own complaints slow a run down without it."},
		{key: "wal", typ: "text", def: "`on`", read: d.chosenWAL(h),
			doc: "`on`: a row is acknowledged when it is in HBase's write-ahead log, whatever the table's `DURABILITY`. `async`, `off`: the death of a region server loses rows that were counted and published; the run warns."},
	}, later("durability", "cell", "namespace", "max_rows_per_second")...)
}

func (d *decoder) clusterFields(c *HBaseCluster) []field {
	return append([]field{
		{key: "name", typ: "text", def: "`primary`", read: d.textField(&c.Name, checkJobName),
			doc: "Used in logs and reports."},
		{key: "zookeeper", typ: "list of host:port", required: true, read: d.addresses(&c.ZooKeeper, "2181"),
			doc: "The ZooKeeper quorum. Without a port: 2181. An item may hold several, separated by commas."},
		{key: "znode", typ: "text", def: "`/hbase`", read: d.textField(&c.ZNode, checkZNode),
			doc: "HBase's root znode (`zookeeper.znode.parent`)."},
		{key: "node_map", typ: "mapping of texts", def: "empty", read: d.nodeMap(&c.NodeMap),
			doc: "Replaces a host, or host:port, of a region server by another where its name does not resolve here."},
	}, later("kerberos", "tls", "user", "replica")...)
}

func (d *decoder) clusters(h *HBase) func(*node) {
	return func(n *node) {
		d.list(n, "HBase clusters", func(_ int, item *node) {
			c := HBaseCluster{Name: "primary", ZNode: "/hbase", NodeMap: map[string]string{}}
			d.mapping(item, d.clusterFields(&c))
			if slices.ContainsFunc(h.Clusters, func(other HBaseCluster) bool { return other.Name == c.Name }) {
				d.report(item.at, "give each cluster a name of its own", "two clusters are called %q", c.Name)
			}
			if slices.ContainsFunc(h.Clusters, func(other HBaseCluster) bool {
				return other.ZNode == c.ZNode && slices.ContainsFunc(other.ZooKeeper, func(s string) bool { return slices.Contains(c.ZooKeeper, s) })
			}) {
				d.report(item.at, "keep one", "the cluster %q is given twice", c.Name)
			}
			h.Clusters = append(h.Clusters, c)
		})
	}
}

func (d *decoder) hbaseTable(h *HBase) func(*node) {
	return func(n *node) {
		s, ok := d.nonEmpty(n)
		if !ok {
			return
		}
		// The client finds no table under the name that the shell gives it, default:t.
		s = strings.TrimPrefix(s, "default:")
		namespace, table, ok := strings.Cut(s, ":")
		if !ok {
			namespace, table = "default", s
		}
		err := checkChars(namespace, "_", "letters, digits, _", true)
		if err == nil {
			err = checkChars(table, "_-.", "letters, digits, _ - .", true)
		}
		if err == nil && namespace == "hbase" {
			err = fmt.Errorf("the namespace hbase is HBase's own")
		}
		if err != nil {
			d.report(n.at, "write table, or namespace:table", "%s: %v", name(n), err)
			return
		}
		h.Table = s
	}
}

// rowKey only keeps the template: package rowkey knows its language.
func (d *decoder) rowKey(h *HBase) func(*node) {
	return func(n *node) {
		s, ok := d.nonEmpty(n)
		if !ok {
			return
		}
		h.RowKey = s
		d.after = append(d.after, func() {
			if h.Salt == nil && strings.Contains(strings.ReplaceAll(s, "{{", ""), "{salt}") {
				d.report(n.offset(max(strings.Index(n.text, "{salt}"), 0)), "add salt: {over: […], buckets: 64}, or remove {salt}",
					"%s: {salt} is used, but there is no sink.hbase.salt", name(n))
			}
		})
	}
}

// saltNodes are a salt's values before the dimensions are known.
type saltNodes struct {
	over            *node
	buckets, prefix int
	hash, form      string
}

func (d *decoder) saltFields(s *saltNodes) []field {
	return []field{
		{key: "over", typ: "list of texts", def: "**required** unless `hash: phoenix`", read: func(n *node) { s.over = n },
			doc: "The dimensions that the salt is computed from."},
		{key: "hash", typ: "text", def: "`md5`", read: d.chosen(&s.hash, "md5", "murmur3", "crc32", "fnv1a", "phoenix"),
			doc: "`md5`, `murmur3` (x86_32, seed 0), `crc32`, `fnv1a` (32 bits), or `phoenix`: the salt byte of Phoenix, over all of the key behind it."},
		{key: "buckets", typ: "whole number", def: "**required** unless `prefix`", read: d.intField(&s.buckets, 2, 65536),
			doc: "Number of different salts, 2 to 65536: the hash modulo it. `SALT_BUCKETS`, 2 to 256, for `phoenix`. Pre-splits of a new table follow it."},
		{key: "prefix", typ: "whole number", def: "none", read: d.intField(&s.prefix, 1, 32),
			doc: "Instead of `buckets`: how many hexadecimal digits, or bytes where `form: binary`, of the digest's beginning are the salt."},
		{key: "form", typ: "text", def: "`hex`", read: d.chosen(&s.form, "hex", "binary"),
			doc: "`hex`: lower-case digits, as many as the largest salt needs. `binary`: one byte, or two for more than 256 buckets; always so for `phoenix`."},
	}
}

func (d *decoder) chosen(dst *string, known ...string) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, known, nil); ok {
			*dst = s
		}
	}
}

func (d *decoder) salt(h *HBase) func(*node) {
	return func(n *node) {
		s, before := &saltNodes{}, len(d.problems)
		h.Salt = &Salt{} // given, if wrongly: no more to say about {salt}
		d.mapping(n, d.saltFields(s))
		if n.kind != kindMap || len(d.problems) > before {
			return
		}
		h.Salt = &Salt{Buckets: s.buckets, Prefix: s.prefix, Hash: SaltHash(s.hash), Binary: s.form == "binary" || s.hash == "phoenix" && s.form == ""}
		if s.hash == "md5" {
			h.Salt.Hash = SaltMD5
		}
		d.after = append(d.after, func() { d.resolveSalt(h, n, s) })
	}
}

func (d *decoder) resolveSalt(h *HBase, n *node, s *saltNodes) {
	if s.over != nil {
		before := len(d.problems)
		if h.Salt.Over = d.dimensionList(s.over); len(d.problems) > before {
			return
		}
	}
	if err := h.Salt.Check(); err != nil {
		d.report(n.at, failure.Remedy(err), "%s: %v", name(n), err)
		return
	}
	if h.RowKey != "" && !strings.Contains(h.RowKey, "{salt}") {
		d.report(n.at, "put {salt} at the beginning of row_key, or remove salt", "%s: the row key has no {salt}", name(n))
	}
}

func (d *decoder) createFields(c *Create) []field {
	return append([]field{
		{key: "compression", typ: "text", def: "`NONE`",
			read: d.familyWord(c, &c.Compression, "COMPRESSION", "NONE", "SNAPPY", "GZ", "LZ4", "ZSTD"),
			doc:  "`NONE`, `SNAPPY`, `GZ`, `LZ4` or `ZSTD`; the region servers must have it."},
		{key: "ttl", typ: "duration", def: "never", read: d.ttl(c),
			doc: "The age at which HBase drops cells, in whole seconds."},
		{key: "versions", typ: "whole number", def: "2", read: d.versions(c),
			doc: "Versions that HBase keeps, 2 to 1000: a reader of the last published run needs its cells while the next run writes."},
		{key: "bloom", typ: "text", def: "`ROW`", read: d.familyWord(c, &c.Bloom, "BLOOMFILTER", "NONE", "ROW", "ROWCOL"),
			doc: "The Bloom filter: `NONE`, `ROW` or `ROWCOL`."},
		{key: "data_block_encoding", typ: "text", def: "`NONE`", read: d.familyWord(c, &c.BlockEncoding, "DATA_BLOCK_ENCODING", "NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"),
			doc: "`NONE`, `PREFIX`, `DIFF`, `FAST_DIFF` or `ROW_INDEX_V1`."},
		{key: "block_size", typ: "size", def: "`64KiB`", read: d.blockSize(c),
			doc: "Size of a block of HBase's files, 1KiB to 16MiB."},
	}, later("in_memory", "splits", "regions")...)
}

// familyWord reads an attribute of a family that is one of some words.
func (d *decoder) familyWord(c *Create, dst *string, attribute string, known ...string) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, known, nil); ok {
			*dst = s
			c.Given = append(c.Given, attribute)
		}
	}
}

func (d *decoder) blockSize(c *Create) func(*node) {
	return func(n *node) {
		const most = 16 << 20
		var v int64
		d.size(&v, 1<<10)(n)
		if v > most {
			d.report(n.at, "", "%s must be at most %d bytes", name(n), most)
			return
		}
		if v > 0 {
			c.BlockSize = v
			c.Given = append(c.Given, "BLOCKSIZE")
		}
	}
}

func (d *decoder) ttl(c *Create) func(*node) {
	return func(n *node) {
		v, ok := d.duration(n)
		if !ok {
			return
		}
		if v < time.Second || v%time.Second != 0 || v/time.Second > math.MaxInt32-1 {
			d.report(n.at, "", "%s must be whole seconds, from 1s to %dd", name(n), math.MaxInt32/86400)
			return
		}
		c.TTL = v
		c.Given = append(c.Given, "TTL")
	}
}

func (d *decoder) versions(c *Create) func(*node) {
	return func(n *node) {
		v, ok := d.number(n, 1, 1000)
		if !ok {
			return
		}
		if v < 2 {
			d.report(n.at, "write 2 or more", "%s: with one version a run would overwrite the rows of the run that readers see", name(n))
			return
		}
		c.Versions = v
		c.Given = append(c.Given, "VERSIONS")
	}
}

func (d *decoder) batchFields(b *Batch) []field {
	return append([]field{
		{key: "rows", typ: "whole number", def: "1000", read: d.intField(&b.Rows, 1, 5000),
			doc: "Rows of one batch, 1 to 5000 (where HBase begins to refuse)."},
		{key: "bytes", typ: "size", def: "`2MiB`", read: d.batchBytes(b),
			doc: "Bytes of one batch, 1KiB to 64MiB; whichever is reached first."},
		{key: "in_flight", typ: "whole number", def: "4", read: d.intField(&b.InFlight, 1, 256),
			doc: "Batches under way at once at each region server, 1 to 256."},
		{key: "compress", typ: "text", def: "`none`", read: d.compression(b),
			doc: "`snappy` compresses the cells on their way to the region servers, for a slow network: it costs CPU on both sides. The servers need Hadoop's SnappyCodec."},
	}, later("rate")...)
}

func (d *decoder) rateFields(r *Rate) []field {
	return []field{
		{key: "rows", typ: "whole number", def: "no cap", read: d.rateRows(r),
			doc: "Rows a second, at least 1."},
		{key: "bytes", typ: "size", def: "no cap", read: d.size(&r.Bytes, 1<<10),
			doc: "Bytes a second as sent, at least 1KiB: keys and columns count for each cell."},
	}
}

func (d *decoder) rateRows(r *Rate) func(*node) {
	return func(n *node) {
		if v, ok := d.number(n, 1, math.MaxInt32); ok {
			r.Rows = int64(v)
		}
	}
}

func (d *decoder) chosenWAL(h *HBase) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, []string{string(WALOn), string(WALAsync), string(WALOff)}, nil); ok {
			h.WAL = WAL(s)
		}
	}
}

func (d *decoder) compression(b *Batch) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, []string{string(CompressNone), string(CompressSnappy)}, nil); ok {
			b.Compress = Compression(s)
		}
	}
}

func (d *decoder) batchBytes(b *Batch) func(*node) {
	return func(n *node) {
		const most = 64 << 20
		var v int64
		d.size(&v, 1<<10)(n)
		if v > most {
			d.report(n.at, "", "%s must be at most %d bytes", name(n), most)
			return
		}
		if v > 0 {
			b.Bytes = v
		}
	}
}

func checkFamily(s string) error {
	if strings.Contains(s, ":") {
		return fmt.Errorf("a family's name has no colon")
	}
	return checkChars(s, "_-.", "letters, digits, _ - .", true)
}

func checkZNode(s string) error {
	if !strings.HasPrefix(s, "/") || (len(s) > 1 && strings.HasSuffix(s, "/")) || strings.Contains(s, "//") {
		return fmt.Errorf("a znode's path begins with / and does not end with it, as /hbase")
	}
	return checkPlain(s)
}
