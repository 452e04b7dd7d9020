package mover

import (
	"context"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// A destination is where the rows of a run go, with all that makes them a run
// there: who may write, how rows of runs that failed are removed, how rows are
// counted, and how readers come to see them. Its methods are called in this
// order, those of a round once a round; open and close frame all, and enter and
// leave all that writes. Units are numbers in the run's plan.
type destination interface {
	// String names it in the report.
	String() string
	// holds names what it counts, as "row keys in HBase".
	holds() string
	// notes are what a person should know about it, found so far.
	notes() []string
	// open connects and checks what can be checked before anything is written.
	open(ctx context.Context, src *source) error
	// enter takes the right to run the job for the date, and removes what runs
	// that were not published have left. The context that it gives ends when the right is lost.
	enter(ctx context.Context) (context.Context, error)
	// keepPlan keeps the plan of a round, for whoever asks later.
	keepPlan(ctx context.Context, plan *scatter.Plan) error
	// begin makes room for the rows of a round, and gives the sink that takes them.
	begin(ctx context.Context, p *part) (roundSink, error)
	// count counts the distinct rows of a round that are there, into counts, which
	// are those of the round's units.
	count(ctx context.Context, p *part, counts []verify.Count) error
	// forget removes the rows of units that are to be gathered again.
	forget(ctx context.Context, units []int) error
	// times gives the timestamps [since, until) of a unit's cells, zero where there are none.
	times(unit int) (since, until int64)
	// publish lets readers see the rows of all units. No row is visible before.
	publish(ctx context.Context, plan *scatter.Plan, rows func(unit int) uint64) error
	// leave records how the run ended, after rows rows were written, and gives the
	// right to run away. It works after ctx has ended, too.
	leave(ctx context.Context, rows int64, err error)
	// close ends all connections.
	close()
}

// destination gives that of the job, for a run.
func (m *Mover) destination(run string, started time.Time) destination {
	var d destination
	switch {
	case m.Job.File != nil:
		d = newFileSet(m, run)
	case len(m.Job.HBase.Clusters) > 1:
		d = newClusters(m, run, started)
	default:
		d = newHBaseTable(m, run, started, 0)
	}
	if m.DryRun {
		d = &dryRun{Mover: m, real: d, held: map[int]countingSink{}}
	}
	return d
}

// A roundSink takes the rows of a round.
type roundSink struct {
	sink.Sink
	// tally reads what was acknowledged so far; it may be called at any time
	// until the sink is closed, and once after.
	tally func() tally
	// settle, if it is there, waits until the rows of all committed slices are where
	// they belong.
	settle func(ctx context.Context) error
}

// A tally counts what a sink has done since it was opened.
type tally struct {
	// rows, cells and bytes were acknowledged, those of attempts that were given up included.
	rows, cells, bytes int64
	// retries are batches that were sent again.
	retries int64
	// pushbacks are requests that a server refused because it was busy; pace is
	// the rate, in rows a second, to which the slowest server is limited, or 0.
	pushbacks, pace int64
}
