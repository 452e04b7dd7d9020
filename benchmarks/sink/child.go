package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	hbasesink "github.com/ck2hbase/ck2hbase/internal/sink/hbase"
)

// result is what a writer prints.
type result struct {
	Rows    int64   `json:"rows"`
	Seconds float64 `json:"seconds"`
}

// writeRows is the Go side: a process of its own that writes the rows through
// the mover's sink.
func writeRows(ctx context.Context, o options, out io.Writer) error {
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client, err := hbase.Dial(ctx, job.HBaseCluster{Name: "benchmark", ZooKeeper: []string{o.quorum}, ZNode: "/hbase"}, log)
	if err != nil {
		return err
	}
	defer client.Close()
	shape, err := newShape(o.cells)
	if err != nil {
		return err
	}
	s, err := hbasesink.New(hbasesink.Config{Client: client, Table: o.table, Family: family, Columns: shape.columns, Keys: shape.keys, Cells: shape.cells,
		Timestamp: o.timestamp, Batch: job.Batch{Rows: o.batchRows, Bytes: 2 << 20, InFlight: o.inFlight}, Log: log})
	if err != nil {
		return err
	}
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for w := range int64(o.writers) {
		group.Go(func() error {
			return writeSlice(ctx, s, &shape, int(w), o.rows*w/int64(o.writers), o.rows*(w+1)/int64(o.writers))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	if acked := s.Stats().Rows; acked != o.rows {
		return fmt.Errorf("%d rows acknowledged of %d", acked, o.rows)
	}
	return json.NewEncoder(out).Encode(result{o.rows, seconds})
}

// blockRows is the size of a block as ClickHouse sends them.
const blockRows = 8192

func writeSlice(ctx context.Context, s *hbasesink.Sink, shape *shape, index int, from, to int64) error {
	w, err := s.Writer(ctx, sink.Slice{Unit: shape.unit, Name: strconv.Itoa(index), Attempt: 1})
	if err != nil {
		return err
	}
	var b row.Batch
	for i := from; i < to; {
		b.Reset(2 + len(shape.columns))
		for end := min(i+blockRows, to); i < end; i++ {
			shape.appendRow(&b, i)
		}
		if err := w.Write(ctx, &b); err != nil {
			w.Abort()
			return err
		}
	}
	_, err = w.Commit(ctx)
	return err
}
