package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// bench is one comparison.
type bench struct {
	options
	client  *hbase.Client
	java    []string // command line up to the arguments
	keys    uint64   // digest of the first table's keys
	hbaseID int      // process of the HBase, 0 if unknown
}

// measured is one run of one writer.
type measured struct {
	rate, cpu, serverCPU float64
	rss                  int64
}

func compare(ctx context.Context, o options) error {
	quorum, pid, stop, err := startHBase(ctx, o.heap)
	if err != nil {
		return err
	}
	defer stop()
	o.quorum = quorum
	client, err := hbase.Dial(ctx, job.HBaseCluster{Name: "benchmark", ZooKeeper: []string{quorum}, ZNode: "/hbase"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer client.Close()
	dir, err := os.MkdirTemp("", "ck2hbase-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	java, err := compileJava(ctx, dir)
	if err != nil {
		return err
	}
	b := &bench{options: o, client: client, java: java, hbaseID: pid}
	return b.run(ctx)
}

func startHBase(ctx context.Context, heap string) (quorum string, pid int, stop func(), err error) {
	if path := os.Getenv(lab.EnvLab); path != "" {
		state, err := lab.ReadState(path)
		if err != nil {
			return "", 0, nil, err
		}
		if state.HBase != nil && len(state.HBase.Servers) > 0 {
			return state.HBase.Quorum, state.HBase.Servers[0].PID, func() {}, nil
		}
	}
	h, err := lab.StartHBase(ctx, lab.HBaseOptions{Heap: heap, Throughput: true})
	if err != nil {
		return "", 0, nil, err
	}
	return h.Quorum(), h.Master.PID(), func() {
		if err := h.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop HBase:", err)
		}
	}, nil
}

// compileJava compiles the Java writer against the jars of the lab's HBase.
func compileJava(ctx context.Context, dir string) ([]string, error) {
	cache, err := lab.CacheDir()
	if err != nil {
		return nil, err
	}
	jars := filepath.Join(cache, "hbase-2.6.4-hadoop3", "jars", "*")
	if err := os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte("log4j.rootLogger=OFF\n"), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "javac", "-cp", jars, "-d", dir, filepath.Join(filepath.Dir(cache), "benchmarks", "sink", "BufferedMutatorBench.java"))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("compile the Java writer: %w", err)
	}
	return []string{"java", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED", "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
		"-cp", dir + ":" + jars, "BufferedMutatorBench"}, nil
}

func (b *bench) run(ctx context.Context) error {
	fmt.Printf("%d rows of %d cells, %d regions; sink: %d writers, %d rows a batch, %d in flight; Java: %d threads\n",
		b.rows, b.cells, b.regions, b.writers, b.batchRows, b.inFlight, b.javaThreads)
	fmt.Println("round  writer      rows/s   client CPU s   µs/row   server CPU s   peak MiB   Go/Java")
	var ratios, cpuRatios []float64
	for round := range max(b.options.rounds, 1) {
		var both [2]measured
		// The order changes from round to round: neither always comes second.
		for i := range 2 {
			which := (i + round) % 2
			m, err := b.measure(ctx, which == 0)
			if err != nil {
				return err
			}
			both[which] = m
			name, ratio := []string{"Go", "Java"}[which], ""
			if i == 1 {
				ratio = fmt.Sprintf("%7.2f", both[0].rate/both[1].rate)
			}
			fmt.Printf("%5d  %-6s  %10.0f   %12.1f   %6.1f   %12.1f   %8d   %s\n", round+1, name, m.rate, m.cpu, m.cpu*1e6/float64(b.rows), m.serverCPU, m.rss>>20, ratio)
		}
		ratios = append(ratios, both[0].rate/both[1].rate)
		cpuRatios = append(cpuRatios, both[0].cpu/both[1].cpu)
	}
	slices.Sort(ratios)
	slices.Sort(cpuRatios)
	fmt.Printf("median: Go writes %.2f of Java's rows a second with %.2f of its client CPU\n", ratios[len(ratios)/2], cpuRatios[len(cpuRatios)/2])
	return nil
}

// measure makes a table, lets one writer fill it, checks it and drops it.
func (b *bench) measure(ctx context.Context, golang bool) (measured, error) {
	shape, err := newShape(b.cells)
	if err != nil {
		return measured{}, err
	}
	table := fmt.Sprintf("benchmark_%d", time.Now().UnixNano())
	if err := b.client.CreateTable(ctx, hbase.TableSpec{Name: table, Family: family, Create: job.Create{Versions: 1}, Splits: shape.keys.Splits(b.regions)}); err != nil {
		return measured{}, err
	}
	before := processCPU(b.hbaseID)
	m, err := b.write(ctx, table, golang)
	if err != nil {
		return measured{}, err
	}
	m.serverCPU = processCPU(b.hbaseID) - before
	if err := b.check(ctx, table); err != nil {
		return measured{}, err
	}
	return m, b.client.DropTable(ctx, table)
}

// write runs a writer as a process.
func (b *bench) write(ctx context.Context, table string, golang bool) (measured, error) {
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	var argv []string
	if golang {
		self, err := os.Executable()
		if err != nil {
			return measured{}, err
		}
		argv = []string{self, "-child", "go", "-quorum", b.quorum, "-table", table, "-rows", n(b.rows), "-cells", n(int64(b.cells)), "-timestamp", n(b.timestamp),
			"-batch-rows", n(int64(b.batchRows)), "-in-flight", n(int64(b.inFlight)), "-writers", n(int64(b.writers)), "-cpu-profile", b.profile}
	} else {
		host, port, err := net.SplitHostPort(b.quorum)
		if err != nil {
			return measured{}, err
		}
		argv = append(slices.Clone(b.java), host, port, table, n(b.rows), n(int64(b.cells)), n(b.timestamp), n(int64(b.javaThreads)))
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return measured{}, fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
	}
	var r result
	if err := json.Unmarshal(out, &r); err != nil {
		return measured{}, fmt.Errorf("%s printed %q: %w", filepath.Base(argv[0]), out, err)
	}
	m := measured{rate: float64(r.Rows) / r.Seconds, cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.rss = u.Maxrss << 10 // KiB on Linux
	}
	return m, nil
}

// check counts the rows and compares the keys with those of the first table.
func (b *bench) check(ctx context.Context, table string) error {
	var digest atomic.Uint64
	rows, err := b.client.ScanKeys(ctx, table, b.timestamp, b.timestamp+1, 2, func(key []byte) error {
		h := fnv.New64a()
		h.Write(key) // never fails
		digest.Add(h.Sum64())
		return nil
	})
	if err != nil {
		return err
	}
	if b.keys == 0 {
		b.keys = digest.Load()
	}
	if rows != b.rows || digest.Load() != b.keys {
		return fmt.Errorf("table %s has %d rows of %d, or other keys than the first writer's", table, rows, b.rows)
	}
	return nil
}

// processCPU is the CPU time of a process in seconds, 0 if unknown.
func processCPU(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// Behind the name in parentheses: state is field 3, utime and stime are 14 and 15.
	_, behind, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(behind)
	if len(fields) < 13 {
		return 0
	}
	const ticksPerSecond = 100
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / ticksPerSecond
}
