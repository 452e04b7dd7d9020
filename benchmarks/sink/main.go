// Command sink compares the mover's HBase sink with HBase's own Java client: the
// same rows into tables of the same shape on the same HBase, in turn.
//
//	go run ./benchmarks/sink [flags]
//
// It starts the lab's HBase, or takes that of the lab which CK2HBASE_LAB points
// to. Each writer is a process of its own; its CPU seconds and peak memory
// are the operating system's. Rows a second are measured inside, without the
// start of the process. After each run the table's rows are counted, and the
// keys of both writers must be the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	rows, timestamp            int64
	cells, rounds, regions     int
	batchRows, inFlight        int
	writers, javaThreads       int
	child, quorum, table, heap string
	profile                    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks/sink:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("sink", flag.ContinueOnError)
	flags.Int64Var(&o.rows, "rows", 1_000_000, "rows a run")
	flags.IntVar(&o.cells, "cells", 4, "cells a row")
	flags.IntVar(&o.rounds, "rounds", 3, "runs of each writer")
	flags.IntVar(&o.regions, "regions", 8, "regions of the tables, at most 64")
	flags.IntVar(&o.batchRows, "batch-rows", 1000, "rows of a batch of the sink")
	flags.IntVar(&o.inFlight, "in-flight", 4, "batches of the sink under way at once")
	flags.IntVar(&o.writers, "writers", 2, "slices that the sink gets at once")
	flags.IntVar(&o.javaThreads, "java-threads", 2, "threads that share the BufferedMutator")
	flags.StringVar(&o.heap, "hbase-heap", "6g", "heap of the HBase that is started")
	flags.StringVar(&o.profile, "cpu-profile", "", "file for a CPU profile of the Go writer (the last round's)")
	flags.StringVar(&o.child, "child", "", "internal: be the Go writer")
	flags.StringVar(&o.quorum, "quorum", "", "internal: ZooKeeper of the child")
	flags.StringVar(&o.table, "table", "", "internal: table of the child")
	flags.Int64Var(&o.timestamp, "timestamp", time.Now().UnixMilli(), "internal: timestamp of the cells")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.child != "" {
		return writeRows(ctx, o, os.Stdout)
	}
	return compare(ctx, o)
}
