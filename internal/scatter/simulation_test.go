package scatter

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

var updateDocs = flag.Bool("update", false, "write the results of the simulation to docs/")

// A simulated cluster: the times are those of the executor's clock, which only
// moves when every goroutine waits.
const (
	simValues = 1e9
	simRows   = 18e9
	// simRate is how many rows of its slice a node aggregates in a second, and
	// simScan the time in which it finds them.
	simRate = 2e6
	simScan = 2 * time.Second
	// simRefuse is how long it takes to notice that a node is gone.
	simRefuse = time.Second
)

type simulation struct {
	nodes    int
	exponent float64 // of Zipf's law
	perNode  int     // slices that the limits demand, for each node
}

type simResult struct {
	slices, failures       int
	planTime               time.Duration
	planBytes              uint64
	makespan, ideal        time.Duration
	heaviest, median, mean uint64
}

// TestSimulation plans and runs 10⁹ values on clusters of which 1 % of the nodes
// fail for good during the run: the makespan stays within 15 % of the ideal, in
// which every node that lives computes all the time, or the heaviest value
// alone takes longer.
func TestSimulation(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(simIntroduction)
	for _, s := range []simulation{{120, 0.5, 16}, {120, 0.8, 16}, {120, 1, 16}, {1000, 0.5, 16}, {1000, 0.8, 16}, {1000, 1, 16}} {
		t.Run(fmt.Sprintf("%d nodes, exponent %.1f", s.nodes, s.exponent), func(t *testing.T) {
			r := s.run(t)
			over := float64(r.makespan)/float64(r.ideal) - 1
			if over > 0.15 {
				t.Errorf("the makespan is %v, %.0f %% over the ideal %v", r.makespan, 100*over, r.ideal)
			}
			if r.planBytes > 200<<20 || r.planTime > 10*time.Second {
				t.Errorf("the planner took %v and %d bytes", r.planTime, r.planBytes)
			}
			fmt.Fprintf(&doc, "| %d | %.1f | %d | %.2f | %.2f | %d | %.0f | %.0f | %+.1f %% |\n", s.nodes, s.exponent, r.slices,
				float64(r.heaviest)/float64(r.mean), float64(r.heaviest)/float64(r.median), r.failures, r.makespan.Seconds(), r.ideal.Seconds(), 100*over)
			t.Logf("%+v", r)
		})
	}
	if *updateDocs {
		if err := os.WriteFile("../../docs/simulation.md", []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const simIntroduction = `# Simulation of large clusters

Written by ` + "`go test ./internal/scatter -run Simulation -update`" + `, which runs the planner's packing and the executor
themselves against a simulated clock; only the queries are sleeps. 18 billion rows of 10⁹ values, whose weights follow
Zipf's law with the given exponent, on nodes that each aggregate 2 million rows a second after 2 seconds of scanning per slice.
1 % of the nodes die for good at a random moment: what runs there fails then, and what is sent there later fails after a second.
The limits demand 16 slices a node. The ideal is the work divided by the nodes that live, or the heaviest slice where that
takes longer: a value that is heavier than a slice has one of its own, and it cannot be cut further by that dimension.
Packing takes less than 50 MB and half a second: the planner sees 65,536 buckets, whatever the number of values.

| nodes | exponent | slices | heaviest / mean | heaviest / median | failed attempts | makespan s | ideal s | over |
|---|---|---|---|---|---|---|---|---|
`

// weights are the rows of each bucket: the most frequent values by themselves,
// the long tail evenly.
func (s simulation) weights(random *rand.Rand) []uint64 {
	const heads = 2_000_000
	rows := make([]float64, Buckets)
	var total float64
	for k := 1; k <= heads; k++ {
		w := math.Pow(float64(k), -s.exponent)
		rows[random.IntN(Buckets)] += w
		total += w
	}
	tail := math.Log(simValues / heads)
	if s.exponent != 1 {
		tail = (math.Pow(simValues, 1-s.exponent) - math.Pow(heads, 1-s.exponent)) / (1 - s.exponent)
	}
	weights := make([]uint64, Buckets)
	for b := range weights {
		weights[b] = uint64((rows[b] + tail/Buckets) / (total + tail) * simRows)
	}
	return weights
}

func (s simulation) run(t *testing.T) simResult {
	random := rand.New(rand.NewPCG(uint64(s.nodes), 1))
	weights := s.weights(random)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	plan := s.plan(weights)
	r := simResult{planTime: time.Since(begin), slices: plan.Slices()}
	runtime.ReadMemStats(&after)
	r.planBytes = after.TotalAlloc - before.TotalAlloc
	r.heaviest, r.median, r.mean = spread(plan.Units[0].Slices)
	r.ideal = s.ideal(plan)
	dies := map[int]time.Duration{}
	for len(dies) < s.nodes/100 {
		dies[random.IntN(s.nodes)] = time.Duration(random.Float64() * float64(r.ideal))
	}
	synctest.Test(t, func(t *testing.T) { r.makespan, r.failures = simulate(t, plan, dies) })
	return r
}

func (s simulation) plan(weights []uint64) *Plan {
	p := &Plan{Units: make([]UnitPlan, 1)}
	for i := range s.nodes {
		p.Nodes = append(p.Nodes, PlanNode{Shard: uint32(i + 1)})
	}
	for i, parcel := range pack(weights, s.nodes*s.perNode) {
		p.Units[0].Slices = append(p.Units[0].Slices, Slice{Name: fmt.Sprint(i), BucketSet: parcel.set, Rows: parcel.rows})
	}
	p.assign()
	return p
}

func spread(all []Slice) (heaviest, median, mean uint64) {
	return all[0].Rows, all[len(all)/2].Rows, sumRows(all) / uint64(len(all)) // heaviest first
}

func (s simulation) ideal(p *Plan) time.Duration {
	var work, longest time.Duration
	for _, slice := range p.Units[0].Slices {
		d := sliceTime(slice)
		work += d
		longest = max(longest, d)
	}
	living := s.nodes - s.nodes/100
	return max(work/time.Duration(living), longest)
}

func sliceTime(s Slice) time.Duration {
	return simScan + time.Duration(float64(s.Rows)/simRate*float64(time.Second))
}

// simulate runs the plan; nodes die at the given times.
func simulate(t *testing.T, p *Plan, dies map[int]time.Duration) (makespan time.Duration, failures int) {
	begin := time.Now()
	e := Executor[Piece]{Nodes: len(p.Nodes), PerNode: 1, Attempts: 4, Pause: time.Second, Log: slog.New(slog.DiscardHandler)}
	failed := make(chan struct{}, 1<<20)
	err := e.Run(t.Context(), p.Tasks(), func(ctx context.Context, node int, piece Piece, _ int) error {
		d := sliceTime(piece.Slice)
		if dead, ok := dies[node]; ok && time.Since(begin)+d > dead {
			failed <- struct{}{}
			time.Sleep(cmp.Or(max(0, dead-time.Since(begin)), simRefuse))
			return failure.Errorf(failure.Transient, "node %d is dead", node)
		}
		time.Sleep(d)
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
	return time.Since(begin), len(failed)
}
