package mover

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// A gatherer moves slices from ClickHouse to a sink.
type gatherer struct {
	*Mover
	run   string
	nodes []*clickhouse.Node
	plan  *scatter.Plan
	sink  sink.Sink
	ahead *readAhead
	cuts  *scatter.Splitter

	mu     sync.Mutex
	counts []sliceCount       // by unit
	short  map[pieceID]uint64 // source rows of attempts that got too few, by unit and slice
}

// pieceID tells slices apart.
type pieceID struct {
	unit int
	name string
}

// sliceCount sums what the committed slices of a unit were.
type sliceCount struct {
	splits     int
	sourceRows uint64
	ack        sink.Ack
}

func newGatherer(m *Mover, run string, nodes []*clickhouse.Node, plan *scatter.Plan, s sink.Sink, ahead *readAhead) *gatherer {
	return &gatherer{
		Mover: m, run: run, nodes: nodes, plan: plan, sink: s, ahead: ahead,
		cuts:   &scatter.Splitter{Job: m.Job, Nodes: nodes, Run: run, Log: m.Log},
		counts: make([]sliceCount, len(plan.Units)),
		short:  map[pieceID]uint64{},
	}
}

// slice moves one slice: it is done when the stream has come to its proven end
// and the sink has acknowledged every row.
func (g *gatherer) slice(ctx context.Context, node int, t scatter.Piece, attempt int) (err error) {
	up, s := &g.plan.Units[t.Unit], t.Slice
	g.Progress.SliceBegun()
	defer func() {
		if err != nil {
			g.Progress.SliceFailed()
			err = fmt.Errorf("level %s, period %s, slice %s: %w", up.Level, up.Period, s.Name, err)
			return
		}
		g.Progress.SliceDone()
	}()
	if attempt > 1 {
		g.Progress.SourceRetried()
	}
	// The sink has its own retries, and its errors end the run: another
	// ClickHouse node would not help.
	w, err := g.sink.Writer(ctx, sink.Slice{Unit: up.Unit, Name: s.Name, Attempt: attempt})
	if err != nil {
		return scatter.GiveUp(err)
	}
	q := clickhouse.Query{
		ID:  fmt.Sprintf("ck2hbase-%s-%s-%s-%s-%d", g.run, up.Level, up.Period, s.Name, attempt),
		SQL: s.SQL, CountLast: true, Gentle: s.Gentle,
		Progress: func(rows, bytes uint64) { g.Progress.Read(int64(rows), int64(bytes)) },
	}
	counted, err := g.pump(ctx, g.nodes[node], q, up.Columns, w)
	if err != nil {
		w.Abort()
		return err
	}
	if !up.Uncounted && !s.Estimated && counted < s.Rows && !g.confirmed(ctx, node, t, counted) {
		w.Abort()
		return failure.Errorf(failure.Transient, "%d source rows came where the plan counted %d", counted, s.Rows)
	}
	ack, err := w.Commit(ctx)
	if err != nil {
		return scatter.GiveUp(err)
	}
	if !up.Uncounted && !s.Estimated && counted != s.Rows {
		g.Log.Warn("the source changed between plan and query", "level", up.Level, "period", up.Period, "slice", s.Name,
			"planned_rows", s.Rows, "rows", counted)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[t.Unit].sourceRows += counted
	g.counts[t.Unit].ack.Add(ack)
	return nil
}

// move runs tasks of the plan on all nodes.
func (g *gatherer) move(ctx context.Context, tasks []scatter.Task[scatter.Piece]) error {
	e := scatter.Executor[scatter.Piece]{
		Nodes: len(g.nodes), PerNode: g.Job.Scatter.PerNode, Total: g.Job.Scatter.Parallel, Attempts: sliceAttempts, Pause: slicePause, Log: g.Log,
		Split: g.split,
	}
	return e.Run(ctx, tasks, g.slice)
}

// split says what to run in place of a slice that hit a limit.
func (g *gatherer) split(ctx context.Context, node int, p scatter.Piece, cause error) ([]scatter.Task[scatter.Piece], error) {
	up := &g.plan.Units[p.Unit]
	parts, err := g.cuts.Split(ctx, node, up, p.Slice, cause)
	if err != nil {
		return nil, fmt.Errorf("level %s, period %s, slice %s: %w", up.Level, up.Period, p.Slice.Name, err)
	}
	tasks := make([]scatter.Task[scatter.Piece], len(parts))
	names := make([]string, len(parts))
	for i, part := range parts {
		tasks[i], names[i] = g.plan.NewTask(p.Unit, part), part.Name
	}
	g.Log.Warn("a slice hit a limit and is cut", "level", up.Level, "period", up.Period, "slice", p.Slice.Name,
		"into", names, "gentle", parts[0].Gentle, "error", cause)
	g.Progress.AddSlices(len(parts) - 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[p.Unit].splits += len(parts) - 1
	return tasks, nil
}

// confirmed tells whether an earlier attempt of the slice, on another node as
// far as there is one, got as few rows as this one, and a count finds fewer than the
// plan did, too. Rows may have been deleted since; but an old server can also read
// an empty answer off a connection to a shard that an earlier failure has left in
// disorder, and where limits are hit all the time more than one connection is.
func (g *gatherer) confirmed(ctx context.Context, node int, p scatter.Piece, counted uint64) bool {
	id := pieceID{p.Unit, p.Slice.Name}
	g.mu.Lock()
	before, seen := g.short[id]
	g.short[id] = counted
	g.mu.Unlock()
	if !seen || before != counted {
		return false
	}
	rows, err := g.cuts.Rows(ctx, node, &g.plan.Units[p.Unit], p.Slice)
	if err != nil {
		g.Log.Warn("the rows of a slice that came short could not be counted", "slice", p.Slice.Name, "error", err)
	}
	return err == nil && rows < p.Slice.Rows
}

// pump reads the query's rows and writes them, both at once: the lane between
// them keeps a pause of the sink from being one of the query. It returns the
// number of source rows in the result.
func (g *gatherer) pump(ctx context.Context, n *clickhouse.Node, q clickhouse.Query, columns []row.Column, w sink.Writer) (uint64, error) {
	l := g.ahead.lane()
	defer l.close()
	var counted uint64
	var readErr error
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		counted, readErr = g.ask(both, n, q, columns, l)
		return readErr
	})
	group.Go(func() error {
		for {
			b, more, err := l.next(both)
			if err != nil || !more {
				return err
			}
			err = w.Write(both, b.Batch)
			l.release(b)
			if err != nil {
				return scatter.GiveUp(err)
			}
		}
	})
	err := group.Wait()
	if ctx.Err() != nil && readErr != nil {
		err = readErr // both were interrupted, and the query knows what it was
	}
	return counted, err
}

// ask runs the query and reads its rows, which must have the given columns, into a lane.
func (g *gatherer) ask(ctx context.Context, n *clickhouse.Node, q clickhouse.Query, columns []row.Column, l *lane) (uint64, error) {
	stream, err := n.Stream(ctx, q)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	if err := sameTypes(n.Addr, columns, stream.Columns); err != nil {
		return 0, err
	}
	err = g.read(ctx, stream, l)
	return stream.Counted, err
}

// sameTypes refuses a node's result with other types than those for which keys
// and cells are made: a Decimal of another scale would be another number.
func sameTypes(node string, want, got []row.Column) error {
	for i, c := range got {
		expected, came := want[i].Type, c.Type
		expected.Name, came.Name = "", ""       // LowCardinality is no matter
		expected.JSON, came.JSON = false, false // it is a text for both
		if expected != came {
			return failure.New(failure.Source, fmt.Errorf("ClickHouse %s: %s is %s there, %s was planned", node, want[i].Name, c.Type.Name, want[i].Type.Name),
				"make the source's tables the same on all nodes")
		}
	}
	return nil
}

// read puts the rows of a stream into a lane, and ends it after the last.
func (g *gatherer) read(ctx context.Context, stream *clickhouse.Stream, l *lane) error {
	for {
		b := l.batch(len(stream.Columns))
		more, err := stream.Next(b, queueRows)
		if err != nil {
			return err
		}
		if b.Len() > 0 {
			g.Progress.Received(int64(b.Len()))
			if err := l.put(ctx, b); err != nil {
				return err
			}
		}
		if !more {
			l.end()
			return nil
		}
	}
}
