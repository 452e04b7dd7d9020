// Command strategies measures what each strategy costs the ClickHouse servers:
// the traffic job over tables that are sharded by shop, sorted by shop, and
// neither, planned and run slice by slice as the mover does, with the results
// thrown away. Beside the CPU seconds stands what the plan estimated, and how
// even the slices were.
//
//	go run ./benchmarks/strategies [-rows 30000000] [-slices 3,12]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

func main() {
	rows := flag.Int64("rows", 30_000_000, "rows of the traffic data; a run reads half of them")
	counts := flag.String("slices", "3,12", "numbers of slices")
	old := flag.Bool("old", false, "run on ClickHouse 18.16 instead of 26.9")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, *rows, strings.Split(*counts, ","), *old)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "strategies:", err)
		os.Exit(1)
	}
}

// layouts are the tables, by the database that each is in.
var layouts = []struct {
	database, shown string
	options         lab.TrafficOptions
}{
	{"sharded", "sharded by shop_id, sorted by dt", lab.TrafficOptions{ShardBy: lab.ShardByShop, OrderBy: "dt"}},
	{"sorted", "sorted by shop_id", lab.TrafficOptions{}},
	{"neither", "sorted by dt", lab.TrafficOptions{OrderBy: "dt"}},
}

func bench(ctx context.Context, rows int64, counts []string, old bool) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cluster, err := lab.StartClickHouse(ctx, lab.ClickHouseOptions{Old: old, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fmt.Printf("ClickHouse %s, %d nodes, %d rows\n\n", cluster.Version, len(cluster.Nodes), rows)
	for _, l := range layouts {
		l.options.Rows = rows
		if err := lab.LoadTraffic(ctx, cluster, l.database, l.options); err != nil {
			return err
		}
		fmt.Printf("%s:\n\n", l.shown)
		fmt.Println("| strategy | slices | wall s | CPU s | of hash | estimated | off by | slowest / median slice | groups |")
		fmt.Println("|---|---|---|---|---|---|---|---|---|")
		for _, n := range counts {
			if err := compare(ctx, cluster, l.database, n); err != nil {
				return err
			}
		}
		fmt.Println()
		if err := cluster.ExecAll(ctx, "DROP DATABASE "+l.database); err != nil {
			return err
		}
	}
	return nil
}

// A measured is one strategy's run.
type measured struct {
	choice      scatter.Choice
	auto        bool
	wall, cpu   float64
	slowest     float64
	groups      int64
	sliceNumber int
}

func compare(ctx context.Context, c *lab.Cluster, database, n string) error {
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	var all []measured
	for _, s := range []scatter.Strategy{scatter.StrategyHash, scatter.StrategyRange, scatter.StrategyLocal} {
		m, err := measure(ctx, c, database, count, s)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s, err)
			continue
		}
		all = append(all, m)
	}
	hash := all[0]
	for _, m := range all {
		name := string(m.choice.Strategy)
		if m.auto {
			name = "**" + name + "**"
		}
		spent, estimated := m.cpu/hash.cpu, m.choice.CPU/hash.choice.CPU
		fmt.Printf("| %s | %d | %.1f | %.1f | %.2f | %.2f | × %.2f | %.2f | %d |\n", name, m.sliceNumber, m.wall, m.cpu, spent, estimated,
			max(spent/estimated, estimated/spent), m.slowest, m.groups)
	}
	return nil
}

// trafficJob is examples/traffic.yaml without a sink.
func trafficJob(database string) *job.Job {
	return &job.Job{
		Name:       "strategies",
		Source:     job.Source{Cluster: lab.ClusterName, Table: database + ".traffic", Where: "dt BETWEEN {start} AND {end}"},
		Dimensions: []job.Dimension{{Name: "shop_id", Expr: "shop_id"}, {Name: "first_source", Expr: "first_source"}},
		Metrics:    []job.Metric{{Name: "pv", Expr: "sum(pv)"}, {Name: "uv", Expr: "uniqExact(user_id)"}, {Name: "amount", Expr: "sum(amount)"}},
		Periods:    []job.Period{"BY_LAST_DAYS_30"},
		Levels:     []job.Level{{Code: "11", Dimensions: []int{0, 1}}},
		Limits:     job.Limits{MaxExecutionTime: 10 * time.Minute, MaxMemoryUsage: 4 << 30, MaxBytesBeforeExternalGroupBy: 2 << 30},
		Scatter:    job.Scatter{PerNode: 1},
	}
}

func measure(ctx context.Context, c *lab.Cluster, database string, count int, s scatter.Strategy) (measured, error) {
	j := trafficJob(database)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src := job.Source{Addresses: c.TCPAddrs()[:1], Cluster: lab.ClusterName, Username: lab.MoverUser, Password: lab.MoverPassword}
	client, err := clickhouse.Open(ctx, src, j.Limits, 2, log)
	if err != nil {
		return measured{}, err
	}
	defer client.Close()
	run := fmt.Sprintf("bench%x", time.Now().UnixNano())
	plan := func() (*scatter.Plan, error) {
		p := &scatter.Planner{Job: j, Nodes: client.Nodes(), Run: run, Log: log}
		return p.Plan(ctx, time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
	}
	free, err := plan()
	if err != nil {
		return measured{}, err
	}
	j.Scatter.Strategy, j.Scatter.Slices = string(s), count
	forced, err := plan()
	if err != nil {
		return measured{}, err
	}
	m := measured{auto: free.Units[0].Strategy == s, sliceNumber: forced.Slices()}
	for _, choice := range forced.Units[0].Choices {
		if choice.Chosen {
			m.choice = choice
		}
	}
	return m, m.execute(ctx, c, client.Nodes(), forced, run, log)
}

// execute runs all slices, and measures them.
func (m *measured) execute(ctx context.Context, c *lab.Cluster, nodes []*clickhouse.Node, plan *scatter.Plan, run string, log *slog.Logger) error {
	var mu sync.Mutex
	var times []float64
	e := scatter.Executor[scatter.Piece]{Nodes: len(nodes), PerNode: 1, Attempts: 1, Pause: time.Second, Log: log}
	before, begin := cpuSeconds(c), time.Now()
	err := e.Run(ctx, plan.Tasks(), func(ctx context.Context, node int, p scatter.Piece, attempt int) error {
		from := time.Now()
		id := fmt.Sprintf("ck2hbase-%s-%s-%s-%d", run, p.Slice.Name, m.choice.Strategy, attempt)
		rows, err := drain(ctx, nodes[node], clickhouse.Query{ID: id, SQL: p.Slice.SQL, CountLast: true})
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Since(from).Seconds())
		m.groups += rows
		return err
	})
	m.wall, m.cpu = time.Since(begin).Seconds(), cpuSeconds(c)-before
	slices.Sort(times)
	if len(times) > 0 {
		m.slowest = times[len(times)-1] / times[len(times)/2]
	}
	return err
}

func drain(ctx context.Context, n *clickhouse.Node, q clickhouse.Query) (rows int64, err error) {
	stream, err := n.Stream(ctx, q)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	var b row.Batch
	for more := true; more; {
		b.Reset(len(stream.Columns))
		if more, err = stream.Next(&b, 4096); err != nil {
			return rows, err
		}
		rows += int64(b.Len())
	}
	return rows, nil
}

// cpuSeconds is the CPU time of all servers so far, as the kernel counts it.
func cpuSeconds(c *lab.Cluster) float64 {
	const ticks = 100 // USER_HZ, the same on all Linux systems
	var sum float64
	for _, n := range c.Nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.PID()))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] { // utime, stime
			v, _ := strconv.ParseFloat(f, 64)
			sum += v / ticks
		}
	}
	return sum
}
