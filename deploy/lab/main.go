// Command lab starts the project's real servers for the demo, for tests by hand
// and for whole test runs, on this machine and without containers.
//
//	go run ./deploy/lab up [flags]             start and leave running
//	go run ./deploy/lab status                 show what runs
//	go run ./deploy/lab down                   end it and remove its files
//	go run ./deploy/lab exec [flags] -- CMD…   start, run CMD with CK2HBASE_LAB set, end
//	go run ./deploy/lab prepare [flags]        only fill the cache
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

const usage = `usage: lab up [flags] | down | status | exec [flags] -- CMD… | prepare [flags]

Without flags, up, exec and prepare take three ClickHouse 26.9 shards and one HBase.
`

func main() {
	// A second signal during the clean-up ends the process at once; the kernel
	// then ends the servers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	commands := map[string]func(context.Context, []string) (int, error){
		"up": up, "down": down, "status": status, "exec": execute, "prepare": prepare, superviseCommand: supervise,
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "lab: no command %q\n%s", args[0], usage)
		return 2
	}
	code, err := command(ctx, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return max(code, 1)
	}
	return code
}

// parse reads the flags that choose the servers; rest is what follows them.
func parse(name string, args []string) (opts lab.Options, rest []string, err error) {
	flags := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	newShards := flags.Int("clickhouse", 0, "`shards` of ClickHouse 26.9")
	oldShards := flags.Int("clickhouse-old", 0, "`shards` of ClickHouse 18.16")
	replicas := flags.Int("replicas", 1, "replicas of each shard")
	hbase := flags.Bool("hbase", false, "an HBase")
	heap := flags.String("hbase-heap", "", "its heap, as in 6g (default 4g, or 1g a region server when split)")
	split := flags.Bool("hbase-split", false, "run HBase in several JVMs")
	throughput := flags.Bool("hbase-throughput", false, "JVM settings for benchmarks: starts later, serves faster")
	if err := flags.Parse(args); err != nil {
		return opts, nil, err
	}
	if *newShards == 0 && *oldShards == 0 && !*hbase && !*split {
		*newShards, *hbase = 3, true
	}
	opts.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if *newShards > 0 {
		opts.ClickHouse = &lab.ClickHouseOptions{Shards: *newShards, Replicas: *replicas, Log: opts.Log}
	}
	if *oldShards > 0 {
		opts.OldClickHouse = &lab.ClickHouseOptions{Old: true, Shards: *oldShards, Replicas: *replicas, Log: opts.Log}
	}
	if *hbase || *split {
		opts.HBase = &lab.HBaseOptions{Heap: *heap, Split: *split, Throughput: *throughput, Log: opts.Log}
	}
	return opts, flags.Args(), nil
}

func needs(o lab.Options) lab.Needs {
	return lab.Needs{ClickHouse: o.ClickHouse != nil, OldClickHouse: o.OldClickHouse != nil, HBase: o.HBase != nil,
		Flights: o.ClickHouse != nil || o.OldClickHouse != nil}
}

func prepare(ctx context.Context, args []string) (int, error) {
	opts, rest, err := parse("prepare", args)
	if err != nil {
		return 2, err
	}
	if len(rest) > 0 {
		return 2, fmt.Errorf("prepare: unexpected %q", rest[0])
	}
	return 0, lab.Prepare(ctx, needs(opts), opts.Log)
}

func status(_ context.Context, args []string) (int, error) {
	if len(args) > 0 {
		return 2, fmt.Errorf("status: unexpected %q", args[0])
	}
	path, err := lab.DefaultStatePath()
	if err != nil {
		return 1, err
	}
	state, err := lab.ReadState(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Println("no lab is up")
		return 1, nil
	case err != nil:
		return 1, err
	}
	show(os.Stdout, state, path)
	return 0, nil
}

// show prints what a person needs to use the lab.
func show(w io.Writer, s *lab.State, path string) {
	fmt.Fprintf(w, "lab up since %s, pid %d\n", s.Started.Local().Format(time.DateTime), s.PID)
	for _, c := range []*lab.ClickHouseState{s.ClickHouse, s.OldClickHouse} {
		if c == nil {
			continue
		}
		fmt.Fprintf(w, "ClickHouse %s, cluster %q, users default (no password) and %s (%s)\n", c.Version, c.Cluster, c.User, c.Password)
		for _, n := range c.Nodes {
			fmt.Fprintf(w, "  shard %d replica %d   native %s   http %s   %s\n", n.Shard, n.Replica, n.TCP, n.HTTP, process(n.ServerState))
		}
	}
	if h := s.HBase; h != nil {
		fmt.Fprintf(w, "HBase, zookeeper %s, znode %s\n", h.Quorum, h.ZNode)
		for _, server := range h.Servers {
			fmt.Fprintf(w, "  %s   %s\n", server.Name, process(server))
		}
	}
	fmt.Fprintf(w, "tests use it with %s=%s\n", lab.EnvLab, path)
}

func process(s lab.ServerState) string {
	if !s.Alive() {
		return fmt.Sprintf("pid %d is DEAD", s.PID)
	}
	return fmt.Sprintf("pid %d", s.PID)
}
