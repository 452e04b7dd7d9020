package mover

import (
	"context"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/dry"
	"github.com/ck2hbase/ck2hbase/internal/sink/file"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// dryRun is the destination of a dry run: rows are encoded as the job says,
// and counted. It asks no server and writes nothing, not even a lease, so it
// may be tried before there is a table.
type dryRun struct {
	*Mover
	real destination // only for its name
	src  *source
	held map[int]countingSink // who has counted the rows of a unit
}

// A countingSink knows what its committed slices were.
type countingSink interface {
	sink.Sink
	Committed(u job.Unit) sink.Ack
	Written() sink.Ack
}

var _ destination = (*dryRun)(nil)

func (d *dryRun) String() string { return d.real.String() }

func (d *dryRun) holds() string { return "rows that would be written" }

func (d *dryRun) open(_ context.Context, src *source) error {
	d.src = src
	return nil
}

func (d *dryRun) enter(ctx context.Context) (context.Context, error) { return ctx, nil }

func (d *dryRun) keepPlan(context.Context, *scatter.Plan) error { return nil }

func (d *dryRun) begin(_ context.Context, p *part) (roundSink, error) {
	s, err := d.sink()
	if err != nil {
		return roundSink{}, err
	}
	for _, i := range p.units {
		d.held[i] = s
	}
	return roundSink{Sink: s, tally: func() tally {
		now := s.Written()
		return tally{rows: now.Rows, cells: now.Cells, bytes: now.Bytes}
	}}, nil
}

func (d *dryRun) sink() (countingSink, error) {
	if d.Job.File != nil {
		return file.New(fileConfig(d.Job, d.src, ""))
	}
	return dry.New(d.src.codec, d.src.cells, d.Job.HBase.Columns), nil
}

// count takes the rows' number from the sink: there is nothing to look at.
func (d *dryRun) count(_ context.Context, p *part, counts []verify.Count) error {
	for k, i := range p.units {
		counts[k].Keys, counts[k].Checked = uint64(d.held[i].Committed(p.plan.Units[k].Unit).Rows), true
	}
	return nil
}

func (d *dryRun) forget(context.Context, []int) error { return nil }

func (d *dryRun) times(int) (since, until int64) { return 0, 0 }

func (d *dryRun) publish(context.Context, *scatter.Plan, func(unit int) uint64) error { return nil }

func (d *dryRun) notes() []string { return nil }

func (d *dryRun) leave(context.Context, int64, error) {}

func (d *dryRun) close() {}
