package scatter

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Plan says what a run will ask, of whom, and why. It is a value: it can be
// printed, compared and stored.
type Plan struct {
	Job  string `json:"job"`
	Date string `json:"date"`
	// ID is the plan's hash, see [Plan.Hash].
	ID string `json:"plan"`
	// Source is the hash of the state of the source's parts before it was planned;
	// empty where they cannot be seen.
	Source string `json:"source,omitempty"`
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
	// Strategy is how slices are cut, and Dimension by the values of what: one
	// dimension, or several together.
	Strategy  Strategy `json:"strategy"`
	Dimension string   `json:"dimension"`
	// Reason says why that dimension, Count why so many slices.
	Reason string `json:"reason"`
	Count  string `json:"slices_reason"`
	// Choices are all strategies with their estimated costs, and why or why not.
	Choices []Choice `json:"choices"`
	// Local is the table behind the source table, where slices read it.
	Local string `json:"local_table,omitempty"`
	// Cardinality estimates the distinct values of each dimension (uniq), from
	// Sampled rows where it is not 0.
	Cardinality map[string]uint64 `json:"cardinality"`
	Sampled     uint64            `json:"sampled_rows,omitempty"`
	// Groups estimates the rows of the result (uniq).
	Groups uint64 `json:"groups"`
	// Rows are the source rows of the unit when it was planned, and Scan those
	// that one query over all of them reads.
	Rows uint64 `json:"rows"`
	Scan uint64 `json:"scan_rows"`
	// Uncounted says that the slices' queries are the job's own, whose results do
	// not say how many source rows are in them.
	Uncounted bool    `json:"uncounted,omitempty"`
	Slices    []Slice `json:"slices"`

	// Columns are those of the result: the level's dimensions, then the metrics.
	Columns []row.Column `json:"-"`

	by   key // what slices are cut by
	dims []job.Dimension
}

// A Strategy is a way to cut a unit into slices.
type Strategy string

// The strategies.
const (
	// StrategyLocal asks each shard for its own table: right where all rows of a group
	// lie on one shard.
	StrategyLocal Strategy = "local"
	// StrategyRange cuts by ranges of a dimension that the primary key can find.
	StrategyRange Strategy = "range"
	// StrategyValues cuts by lists of values.
	StrategyValues Strategy = "values"
	// StrategyHash cuts by hash buckets: always right, and each slice reads all rows.
	StrategyHash Strategy = "hash"
)

// A Choice is a strategy with its estimated cost.
type Choice struct {
	Strategy Strategy `json:"strategy"`
	Chosen   bool     `json:"chosen,omitempty"`
	// Slices is their number, and Rows what they read together.
	Slices int    `json:"slices,omitempty"`
	Rows   uint64 `json:"rows_read,omitempty"`
	// CPU estimates the servers' CPU time in seconds. The scale depends on the
	// machines; the ratios of strategies are what is compared.
	CPU float64 `json:"cpu_seconds,omitempty"`
	// Reason says how the cost was found, or why the strategy cannot be used.
	Reason string `json:"reason"`
}

// Builder writes queries of the unit.
func (up *UnitPlan) Builder(j *job.Job) (*Builder, error) { return NewBuilder(j, up.Unit, up.dims) }

// group is the key of all dimensions of the level.
func (up *UnitPlan) group() key { return keyOf(up.dims, up.Columns) }

func keyOf(dims []job.Dimension, columns []row.Column) key {
	k := make(key, len(dims))
	for i, d := range dims {
		k[i] = keyPart{d.Name, d.Expr, columns[i].Type}
	}
	return k
}

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
			tasks = append(tasks, p.NewTask(u, s))
		}
	}
	return tasks
}

// NewTask makes the task of a slice of a unit.
func (p *Plan) NewTask(unit int, s Slice) Task[Piece] {
	t := Task[Piece]{Work: Piece{unit, s}, Node: s.Node, Weight: s.Rows}
	if s.Shard != 0 {
		for i, n := range p.Nodes {
			if n.Shard == s.Shard {
				t.Only = append(t.Only, i)
			}
		}
	}
	return t
}

// Hash identifies what the plan asks: the same hash is the same queries over
// the same slices, whichever nodes run them.
func (p *Plan) Hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", p.Job, p.Date, p.Limits)
	for i := range p.Units {
		for _, s := range p.Units[i].Slices {
			fmt.Fprintf(h, "%q %q %q %d %q\n", p.Units[i].Level, p.Units[i].Period, s.Name, s.Shard, s.SQL)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// assign gives each slice the node that is first in line: heavy slices first,
// each to the node with the least to do among those that may run it.
func (p *Plan) assign() {
	type ref struct{ unit, slice int }
	var all []ref
	for u := range p.Units {
		for i := range p.Units[u].Slices {
			all = append(all, ref{u, i})
		}
	}
	at := func(r ref) *Slice { return &p.Units[r.unit].Slices[r.slice] }
	slices.SortStableFunc(all, func(a, b ref) int { return cmp.Compare(at(b).Rows, at(a).Rows) })
	load := make([]uint64, len(p.Nodes))
	for _, r := range all {
		s, best := at(r), -1
		for i, n := range p.Nodes {
			if (s.Shard == 0 || s.Shard == n.Shard) && (best < 0 || load[i] < load[best]) {
				best = i
			}
		}
		s.Node = best
		load[best] += s.Rows + 1
	}
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

func day(t time.Time) string { return t.Format(time.DateOnly) }
