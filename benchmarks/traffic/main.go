// Command traffic measures a whole run of the traffic job on real servers: wall
// time, CPU seconds and peak memory of the mover as the operating system counts
// them for its process.
//
//	go run ./benchmarks/traffic [-rows 30000000] [-runs 2]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

func main() {
	rows := flag.Int64("rows", 30_000_000, "rows of the traffic data")
	runs := flag.Int("runs", 2, "runs of the job")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, *rows, *runs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "traffic:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, rows int64, runs int) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	servers, err := lab.Start(ctx, lab.Options{
		ClickHouse: &lab.ClickHouseOptions{}, HBase: &lab.HBaseOptions{Heap: "6g", Throughput: true}, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	log.Info("generating the data", "rows", rows)
	if err := lab.LoadTraffic(ctx, servers.ClickHouse, "demo", lab.TrafficOptions{Rows: rows}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ck2hbase-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "ck2hbase")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/ck2hbase").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	fmt.Printf("%d source rows, %d CPUs, %s\n", rows, runtime.NumCPU(), runtime.Version())
	fmt.Println("| run | result rows | wall s | CPU s | peak MiB | rows/s | scatter s | verify s |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for i := range runs {
		if err := once(ctx, servers, program, i+1); err != nil {
			return err
		}
	}
	return nil
}

// result is what the benchmark reads of the run's report.
type result struct {
	Totals struct {
		Written int64 `json:"rows_written"`
	} `json:"totals"`
	Phases []struct {
		Phase   string  `json:"phase"`
		Seconds float64 `json:"seconds"`
	} `json:"phases"`
}

func once(ctx context.Context, servers *lab.Running, program string, run int) error {
	c := exec.CommandContext(ctx, program, "run", "examples/traffic.yaml", "--date", "2026-11-29", "--json", "--log-format", "text")
	c.Env = append(os.Environ(),
		"CK2HBASE_CLICKHOUSE="+strings.Join(servers.ClickHouse.TCPAddrs(), ","), "CK2HBASE_CLUSTER="+lab.ClusterName,
		"CK2HBASE_CLICKHOUSE_USER="+lab.MoverUser, "CK2HBASE_CLICKHOUSE_PASSWORD="+lab.MoverPassword,
		"CK2HBASE_ZOOKEEPER="+servers.HBase.Quorum(),
	)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	begin := time.Now()
	if err := c.Run(); err != nil {
		return fmt.Errorf("the run failed: %w\n%s", err, out.String())
	}
	wall := time.Since(begin).Seconds()
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	seconds := map[string]float64{}
	for _, p := range r.Phases {
		seconds[p.Phase] = p.Seconds
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system gives no resource usage")
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	fmt.Printf("| %d | %d | %.1f | %.1f | %d | %.0f | %.1f | %.1f |\n", run, r.Totals.Written, wall, cpu.Seconds(),
		usage.Maxrss/1024, float64(r.Totals.Written)/wall, seconds["scatter"], seconds["verify"])
	return nil
}
