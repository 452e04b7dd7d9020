package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// State is how a run ended.
type State string

// The states of a run.
const (
	// Published: verified, and readers see it.
	Published State = "published"
	// Unverified: written, but the verification found a difference or could
	// not be made. Readers see the run before.
	Unverified State = "not verified"
	// Failed: readers see the run before.
	Failed State = "failed"
	// Interrupted: the same command may go on.
	Interrupted State = "interrupted"
	// Counted: a dry run; nothing was written.
	Counted State = "dry run"
	// Verified: what was published before is what the source gives now.
	Verified State = "verified"
	// Locked: another run was at work; nothing was done.
	Locked State = "locked"
)

// A Result is the report of one run. Its JSON form is what --json prints;
// fields are only ever added to it.
type Result struct {
	Job  string `json:"job"`
	Date string `json:"date"`
	// Run is the run's id in the ledger.
	Run   string `json:"run"`
	State State  `json:"state"`
	// DryRun says that nothing was written: the rows and bytes are those that
	// would be.
	DryRun bool `json:"dry_run,omitempty"`
	// Compared says that nothing was run: what is published was verified once more.
	Compared bool `json:"compared,omitempty"`
	// Sink names where the rows went, as "hbase table shop_source".
	Sink string `json:"sink"`
	// Receiver is a short name of where they are counted, "hbase" if empty.
	Receiver string `json:"-"`
	// Timestamp is that of the run's cells, in milliseconds since 1970; readers
	// take cells with Since ≤ timestamp < Until. Levels and periods that were
	// gathered again have later ones; see those of the units.
	Timestamp int64 `json:"timestamp"`
	Since     int64 `json:"since"`
	Until     int64 `json:"until"`
	// Clusters say what became of each, where there are several.
	Clusters []ClusterResult `json:"clusters,omitempty"`
	// Notes are what is odd about the place that the rows went to.
	Notes []string `json:"notes,omitempty"`
	// SourceChanges are the partitions that changed during the run and from which
	// the job takes rows. SourceUnknown is why that could not be told for all of them.
	SourceChanges []PartitionChange `json:"source_changes,omitempty"`
	SourceUnknown string            `json:"source_unknown,omitempty"`
	// SourceReruns is how often what had changed was gathered again.
	SourceReruns int `json:"source_reruns,omitempty"`
	// Units are the levels and periods, in the job's order.
	Units  []UnitResult `json:"units"`
	Totals Totals       `json:"totals"`
	Phases []PhaseTime  `json:"phases"`
	// Seconds is the run's whole time.
	Seconds float64 `json:"seconds"`
	// Error is nil for a published run.
	Error *ErrorResult `json:"error,omitempty"`
}

// A UnitResult is about one level over one period. Counts are nil where
// nothing was counted.
type UnitResult struct {
	Level  string `json:"level"`
	Period string `json:"period"`
	// Start and End are the first and the last day, as 2026-10-31.
	Start string `json:"start"`
	End   string `json:"end"`
	// Slices is the number of slices that were moved; Splits of them were made by
	// cutting a slice that hit a limit.
	Slices int `json:"slices"`
	Splits int `json:"splits"`
	// SourceRows is the number of rows of the source that were aggregated.
	SourceRows *uint64 `json:"source_rows"`
	// ClickHouse and HBase are the numbers of result rows on both sides; HBase
	// stands for files, too.
	ClickHouse *uint64 `json:"clickhouse_count"`
	HBase      *uint64 `json:"hbase_count"`
	// Since and Until are the timestamps of the unit's cells, as in [Result].
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	// SourceChanged says that the source changed while the unit was gathered: the
	// result mixes moments. It shows in the partitions, or in the number of source
	// rows, which was not the same in the plan, in the slices and in the count.
	SourceChanged bool `json:"source_changed"`
	// Cells is what was compared with verify.level: full, nil else.
	Cells *CellsResult `json:"cells,omitempty"`
	// Verified says that both were counted to the end and are equal, and so are the
	// cells if these were compared.
	Verified bool `json:"verified"`
}

// A CellsResult has the cells of a unit as they were acknowledged and as a scan
// found them: their numbers and checksums.
type CellsResult struct {
	Written    uint64 `json:"written"`
	WrittenSum string `json:"written_checksum"`
	HBase      uint64 `json:"hbase"`
	HBaseSum   string `json:"hbase_checksum"`
}

// States of a cluster besides those of a run.
const (
	// UpToDate: another run had published there what this one made for others.
	UpToDate = "up to date"
	// NotPublished: nothing is wrong with it, but the run was not published.
	NotPublished = "not published"
)

// A ClusterResult is what became of one of several clusters.
type ClusterResult struct {
	Name string `json:"name"`
	// State is [Published], [UpToDate], [NotPublished], or a [State] that a run
	// ends with by what Error says.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Since and Until are the first and the last timestamp of its cells, as in
	// [Result]; 0 where nothing was written.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
}

// A PartitionChange is a partition of one node that changed during a run.
type PartitionChange struct {
	Shard      uint32 `json:"shard"`
	Replica    uint32 `json:"replica"`
	Node       string `json:"node"`
	Partition  string `json:"partition"`
	RowsBefore uint64 `json:"rows_before"`
	RowsAfter  uint64 `json:"rows_after"`
	// Mutated says that an ALTER … UPDATE or DELETE went over it.
	Mutated bool `json:"mutated,omitempty"`
}

// Totals are sums over a run.
type Totals struct {
	RowsRead      int64 `json:"rows_read"`
	RowsWritten   int64 `json:"rows_written"`
	Cells         int64 `json:"cells"`
	Bytes         int64 `json:"bytes"`
	SourceRetries int64 `json:"source_retries"`
	SinkRetries   int64 `json:"sink_retries"`
	// SpooledBytes of rows waited on disk, because the sink was slower than ClickHouse.
	SpooledBytes int64 `json:"spooled_bytes"`
}

// Totals takes the sums of a run from its counters.
func (s Snapshot) Totals() Totals {
	return Totals{
		RowsRead: s.RowsRead, RowsWritten: s.RowsWritten, Cells: s.CellsWritten, Bytes: s.BytesWritten,
		SourceRetries: s.SourceRetries, SinkRetries: s.SinkRetries, SpooledBytes: s.SpooledBytes,
	}
}

// An ErrorResult is why a run was not published.
type ErrorResult struct {
	// Code is the exit code.
	Code    int    `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// NewError describes an error; nil for nil.
func NewError(err error) *ErrorResult {
	if err == nil {
		return nil
	}
	return &ErrorResult{Code: int(failure.ClassOf(err)), Message: err.Error(), Remedy: failure.Remedy(err)}
}

// StateOf is the state of a run that ended with err; nil means published.
func StateOf(err error) State {
	switch failure.ClassOf(err) {
	case 0:
		return Published
	case failure.Mismatch:
		return Unverified
	case failure.Locked:
		return Locked
	case failure.Transient:
		return Interrupted
	default:
		return Failed
	}
}

// WriteJSON writes the result as indented JSON.
func (r *Result) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
