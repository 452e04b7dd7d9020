// Package job reads a job file and turns it into a validated [Job]: what to
// aggregate, for which periods and levels, under which limits, and where the
// rows go. It is the bottom layer: it knows no server and no other package of
// this module.
package job

import (
	"time"
)

// A Job is one validated job file. Every field is set: absent keys have their
// documented default. A Job is not changed after [Load] returned it.
type Job struct {
	// Path is the job file's path as given, for messages.
	Path string
	// Name identifies the job in the ledger: two files with one name are one job.
	Name string
	// Source says where the detail rows are.
	Source Source
	// Dimensions are all dimensions that any level groups by, in file order.
	Dimensions []Dimension
	// Metrics are the aggregates, in file order.
	Metrics []Metric
	// SQL, if not empty, is the query to run, with {slice} in it; its columns are
	// called as the dimensions, and the metrics are expressions over them.
	SQL string
	// Periods are the periods to aggregate over, in file order.
	Periods []Period
	// Timezone renders DateTime values in keys and cells.
	Timezone *time.Location
	// Levels are the dimension combinations; at least one.
	Levels []Level
	// Limits bound every query on the servers.
	Limits Limits
	// Scatter says how the work is cut into slices.
	Scatter Scatter
	// Spool says where rows wait that the sink cannot take yet.
	Spool Spool
	// HBase is the sink, unless File is not nil.
	HBase HBase
	// File writes the rows to files instead.
	File *File
	// Verify says what is checked before the rows are published.
	Verify Verify

	// places are the keys of the file, for messages about them.
	places *placeIndex
}

// Source is the ClickHouse side of a job.
type Source struct {
	// Addresses are host:port pairs of the protocol; any one that answers is
	// enough, the rest is read from system.clusters.
	Addresses []string
	// Protocol is how the nodes are asked; empty means [Native].
	Protocol Protocol
	// TLS encrypts the connections; nil means that they are not.
	TLS *TLS
	// Cluster is a name in system.clusters.
	Cluster string
	// Username and Password log in on every node.
	Username string
	Password Secret
	// NodeMap replaces a host, or a host:port, of system.clusters by another
	// host or host:port.
	NodeMap map[string]string
	// Table is database.table or table: a Distributed table that is the same on
	// every node, or in a cluster of one shard any table.
	Table string
	// Where is a filter with the placeholders of [Render]; empty means none.
	Where string
	// OnChange says what to do about a source that changed during the run.
	OnChange OnChange
}

// OnChange is what to do about a source that changed during a run.
type OnChange string

// The ways to deal with a change.
const (
	ChangeWarn  OnChange = "warn"                     // publish and say so
	ChangeFail  OnChange = "fail"                     // do not publish
	ChangeRerun OnChange = "rerun_changed_partitions" // gather again what is concerned
)

// Protocol is a way to ask a ClickHouse server.
type Protocol string

// The protocols.
const (
	Native Protocol = "native"
	HTTP   Protocol = "http"
)

// TLS says how connections are encrypted. The zero value trusts the machine's
// authorities and shows no certificate.
type TLS struct {
	// CA, Cert and Key are PEM; empty where the file gave none. Cert and Key
	// belong together.
	CA, Cert []byte
	Key      Secret
	// ServerName is the name that certificates must hold; empty means the host
	// that is dialled.
	ServerName string
}

// A Secret is a string that never shows itself: it prints, logs and encodes
// as [redacted]. The conversion string(s) gives what it holds.
type Secret string

// A Dimension is a grouping expression.
type Dimension struct {
	// Name is used in keys, levels, logs.
	Name string
	// Expr is the SQL expression; the name itself when the file gave none.
	Expr string
	// Null is what a NULL becomes in a row key.
	Null NullPolicy
}

// NullPolicy says how NULL is written.
type NullPolicy struct {
	// Mode is what to do with NULL.
	Mode NullMode
	// Literal is the text for [NullLiteral].
	Literal string
}

// NullMode is the kind of a [NullPolicy].
type NullMode string

// The ways to write NULL. NullReject is the default of dimensions, NullSkip
// (no cell) that of metrics.
const (
	NullReject  NullMode = "reject"  // dimensions: the run fails
	NullSkip    NullMode = "skip"    // metrics: no cell
	NullEmpty   NullMode = "empty"   // no bytes
	NullLiteral NullMode = "literal" // the given text
)

// A Metric is an aggregate.
type Metric struct {
	// Name is used in logs and as the default qualifier.
	Name string
	// Expr is an aggregate SQL expression.
	Expr string
	// Encode is how the value becomes a cell.
	Encode Encoding
	// Null is what a NULL becomes.
	Null NullPolicy
}

// Encoding is a cell encoding; see package rowkey for the bytes of each.
type Encoding string

// The cell encodings. EncodeAuto chooses by the column's type. Besides them
// there are the types of Phoenix, see package rowkey.
const (
	EncodeAuto    Encoding = "auto"
	EncodeText    Encoding = "text"
	EncodeInt32   Encoding = "int32"
	EncodeInt64   Encoding = "int64"
	EncodeFloat64 Encoding = "float64"
	EncodeDecimal Encoding = "decimal"
	EncodeBool    Encoding = "bool"
)

// A Level is one dimension combination.
type Level struct {
	// Code is the level's {lvl} in row keys.
	Code string
	// Dimensions are indexes into [Job.Dimensions], in the level's order.
	Dimensions []int
}

// Limits are forced on every query, on the initiator and on every shard.
type Limits struct {
	// MaxExecutionTime is the server-side limit of one query, in whole seconds.
	MaxExecutionTime time.Duration
	// MaxMemoryUsage is bytes per query and server.
	MaxMemoryUsage int64
	// MaxBytesBeforeExternalGroupBy is bytes of aggregation state after which
	// the server spills to disk.
	MaxBytesBeforeExternalGroupBy int64
}

// Scatter says how the work is cut.
type Scatter struct {
	// Dimension names the dimension to slice by; empty means the one of
	// highest cardinality.
	Dimension string
	// Strategy names one of package scatter's strategies; empty means the one of
	// least estimated cost.
	Strategy string
	// Slices is the number of slices of a level and period; 0 means as few as
	// the limits allow.
	Slices int
	// PerNode is the number of slices that may run on one node at once.
	PerNode int
	// Parallel is the number of slices that may run at once on all nodes; 0
	// means that PerNode alone bounds it.
	Parallel int
}

// Spool bounds the rows that wait on disk.
type Spool struct {
	// Dir is an absolute path; empty means a directory for temporary files.
	Dir string
	// MaxBytes bounds all slices together: 0 turns the spool off, [SpoolAuto]
	// leaves it to what is free.
	MaxBytes int64
}

// SpoolAuto is the bound of a job file that names none.
const SpoolAuto = -1

// HBase is the HBase sink.
type HBase struct {
	// Clusters are the clusters to write to, with names that differ.
	Clusters []HBaseCluster
	// Require says in which of several clusters a run must be published.
	Require Require
	// Table is the table's name, behind its namespace and a colon unless that is "default".
	Table string
	// Family is the column family of all cells.
	Family string
	// RowKey is a template of package rowkey.
	RowKey string
	// Salt spreads the rows; nil means that the template has no {salt}.
	Salt *Salt
	// Columns are the qualifiers, by index into [Job.Metrics]; Pack alone if it is set.
	Columns []string
	// Pack is the qualifier of the cell that holds all metrics as JSON; empty
	// means a cell for each.
	Pack string
	// Create is how an absent table is made.
	Create Create
	// Batch bounds one batch of puts.
	Batch Batch
	// Rate caps what is written in a second.
	Rate Rate
	// WAL says what a put waits for.
	WAL WAL
}

// File is the sink that writes files.
type File struct {
	// Path is the file's, with the placeholders {date}, {lvl} and {tp}.
	Path   string
	Format FileFormat
}

// FileFormat is how a file holds rows.
type FileFormat string

// The formats.
const (
	NDJSON  FileFormat = "ndjson"
	CSV     FileFormat = "csv"
	Parquet FileFormat = "parquet"
)

// Require says in which of several clusters a run must be published to succeed.
type Require string

// The requirements.
const (
	RequireAll Require = "all"
	RequireAny Require = "any" // in at least one
)

// HBaseCluster is one HBase.
type HBaseCluster struct {
	// Name is used in logs and reports.
	Name string
	// ZooKeeper is the quorum: host:port pairs.
	ZooKeeper []string
	// ZNode is the root znode.
	ZNode string
	// NodeMap replaces a host, or a host:port, of a region server by another.
	NodeMap map[string]string
}

// Create describes the table that is made when it is absent.
type Create struct {
	// Compression is NONE, SNAPPY, GZ, LZ4 or ZSTD.
	Compression string
	// TTL is the age at which HBase drops cells; 0 means never.
	TTL time.Duration
	// Versions is the number of versions that HBase keeps.
	Versions int
	// Bloom is NONE, ROW or ROWCOL; empty is HBase's default, ROW.
	Bloom string
	// BlockEncoding is DATA_BLOCK_ENCODING; empty is HBase's default, NONE.
	BlockEncoding string
	// BlockSize is in bytes; 0 is HBase's default, 64 KiB.
	BlockSize int64
	// Given are HBase's names of what the file says: an existing table is compared
	// with that.
	Given []string
}

// Batch bounds one batch of puts.
type Batch struct {
	// Rows and Bytes cap one batch; whichever is reached first.
	Rows  int
	Bytes int64
	// InFlight is the number of batches under way at once.
	InFlight int
	// Compress is how a batch's cells are compressed on their way.
	Compress Compression
}

// Compression is how cells are compressed on their way to HBase.
type Compression string

// The compressions. Snappy needs the codec of that name in the region servers.
const (
	CompressNone   Compression = "none"
	CompressSnappy Compression = "snappy"
)

// Rate caps what is written in a second; zero fields are no cap.
type Rate struct {
	Rows, Bytes int64
}

// WAL says what a put waits for before HBase acknowledges it.
type WAL string

const (
	// WALOn waits for the write-ahead log, whatever the table says.
	WALOn WAL = "on"
	// WALAsync acknowledges before the log is written: the death of a region
	// server loses rows of its last moments that were acknowledged.
	WALAsync WAL = "async"
	// WALOff writes no log: the death of a region server loses what it has not flushed.
	WALOff WAL = "off"
)

// Verify says what is checked before publishing.
type Verify struct {
	// Level is the depth of the check.
	Level VerifyLevel
	// AllowEmpty publishes a run for which the source has no rows at all.
	AllowEmpty bool
}

// VerifyLevel is a depth of checking.
type VerifyLevel string

// The levels, each with what those before it check.
const (
	// VerifyCount compares numbers of rows.
	VerifyCount VerifyLevel = "count"
	// VerifyFull compares all cells that were written with all that are there.
	VerifyFull VerifyLevel = "full"
)
