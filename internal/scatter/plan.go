package scatter

import (
	"strconv"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Plan says what a run will ask, of whom, and why. It is a value: it can be
// printed, compared and stored.
type Plan struct {
	Job  string `json:"job"`
	Date string `json:"date"`
	// Nodes are the servers that may be an initiator, by number.
	Nodes []PlanNode `json:"nodes"`
	// Limits are the settings that every query carries.
	Limits []string `json:"limits"`
	// Units are the levels and periods of the job, in the job's order.
	Units []UnitPlan `json:"units"`
}

// A PlanNode is a server as the plan knows it.
type PlanNode struct {
	Addr    string `json:"address"`
	Shard   uint32 `json:"shard"`
	Replica uint32 `json:"replica"`
	Version string `json:"version"`
}

// A UnitPlan is the plan for one level over one period.
type UnitPlan struct {
	Unit   job.Unit `json:"-"`
	Level  string   `json:"level"`
	Period string   `json:"period"`
	Start  string   `json:"start"`
	End    string   `json:"end"`
	// Strategy is how slices are cut: hash.
	Strategy string `json:"strategy"`
	// Dimension is the one that the slices are cut by, and Reason says why.
	Dimension string `json:"dimension"`
	Reason    string `json:"reason"`
	// Cardinality estimates the distinct values of each dimension (uniq).
	Cardinality map[string]uint64 `json:"cardinality"`
	// Groups estimates the rows of the result (uniq).
	Groups uint64 `json:"groups"`
	// Rows are the source rows of the unit when it was planned.
	Rows uint64 `json:"rows"`
	// FilledBuckets is the number of hash buckets that hold rows.
	FilledBuckets int     `json:"filled_buckets"`
	Slices        []Slice `json:"slices"`

	// Columns are those of the result: the level's dimensions, then the metrics.
	Columns []row.Column `json:"-"`
	// SliceBy is the slicing dimension, and SliceType the type of its values.
	SliceBy   job.Dimension `json:"-"`
	SliceType row.Type      `json:"-"`

	dims []job.Dimension
}

// Builder writes queries of the unit.
func (up *UnitPlan) Builder(j *job.Job) (*Builder, error) { return NewBuilder(j, up.Unit, up.dims) }

// Slices is the number of slices in all units.
func (p *Plan) Slices() int {
	n := 0
	for i := range p.Units {
		n += len(p.Units[i].Slices)
	}
	return n
}

// A Piece is a slice of a unit of the plan: the work of the executor.
type Piece struct {
	// Unit is an index into [Plan.Units].
	Unit  int
	Slice Slice
}

// Tasks gives the plan's slices as tasks.
func (p *Plan) Tasks() []Task[Piece] {
	tasks := make([]Task[Piece], 0, p.Slices())
	for u := range p.Units {
		for _, s := range p.Units[u].Slices {
			tasks = append(tasks, NewTask(u, s))
		}
	}
	return tasks
}

// NewTask makes the task of a slice of a unit.
func NewTask(unit int, s Slice) Task[Piece] {
	return Task[Piece]{Work: Piece{unit, s}, Node: s.Node, Weight: s.Rows}
}

// Groups estimates the result rows of all units.
func (p *Plan) Groups() uint64 {
	var n uint64
	for i := range p.Units {
		n += p.Units[i].Groups
	}
	return n
}

// Rows is the number of source rows in all units.
func (p *Plan) Rows() uint64 {
	var n uint64
	for i := range p.Units {
		n += p.Units[i].Rows
	}
	return n
}

// cut divides the buckets into at most n contiguous ranges of nearly equal
// weight that cover all buckets; every range but a lone one holds rows.
// weights[b] is the number of rows in bucket b.
func cut(weights []uint64, n int) []Slice {
	var total uint64
	for _, w := range weights {
		total += w
	}
	var slices []Slice
	lo, sum, done := 0, uint64(0), uint64(0)
	for b, w := range weights {
		// Where the next bucket would bring the range further above its share
		// than it is below it now, the range ends before that bucket.
		left := uint64(n - len(slices))
		share := (total - done) / max(left, 1)
		if left > 1 && sum > 0 && w > 0 && sum+w > share && sum+w-share > share-min(sum, share) {
			slices = append(slices, Slice{Name: strconv.Itoa(len(slices)), Lo: lo, Hi: b - 1, Rows: sum})
			done += sum
			lo, sum = b, 0
		}
		sum += w
	}
	return append(slices, Slice{Name: strconv.Itoa(len(slices)), Lo: lo, Hi: len(weights) - 1, Rows: sum})
}

func day(t time.Time) string { return t.Format(time.DateOnly) }
