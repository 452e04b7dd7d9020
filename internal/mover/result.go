package mover

import (
	"time"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

func (r *run) result(err error) *report.Result {
	snapshot := r.Progress.Snapshot()
	res := &report.Result{
		Job: r.Job.Name, Date: day(r.Date), Run: r.id, State: report.StateOf(err), Error: report.NewError(err),
		Sink:   r.dest.String(),
		Totals: snapshot.Totals(), Phases: snapshot.Phases, Seconds: time.Since(r.started).Seconds(),
	}
	if first, last := r.times(); first != 0 {
		res.Timestamp, res.Since, res.Until = first, first, last+1
	}
	if r.Job.File != nil {
		res.Receiver = "files"
	}
	res.Notes = r.dest.notes()
	if several, ok := r.dest.(*clusters); ok {
		res.Clusters = several.verdicts(err)
	}
	if r.DryRun {
		res.Receiver = "dry run"
		if res.DryRun = true; err == nil {
			res.State = report.Counted
		}
	}
	r.drift.report(res)
	if r.plan == nil {
		return res
	}
	for i := range r.plan.Units {
		res.Units = append(res.Units, r.unitResult(i))
	}
	return res
}

func (r *run) unitResult(i int) report.UnitResult {
	u, s := &r.plan.Units[i], &r.units[i]
	unit := report.UnitResult{Level: u.Level, Period: u.Period, Start: u.Start, End: u.End, Slices: len(u.Slices), SourceChanged: s.changed}
	unit.Since, unit.Until = r.dest.times(i)
	if s.moved != nil {
		unit.Slices += s.moved.splits
		unit.Splits = s.moved.splits
		unit.SourceRows = &s.moved.sourceRows
	}
	if s.count != nil {
		unit.ClickHouse = &s.count.Groups
		if s.count.Checked {
			unit.HBase = &s.count.Keys
		}
		if w, h := s.count.Written, s.count.There; w != nil && h != nil {
			unit.Cells = &report.CellsResult{Written: w.Cells, WrittenSum: w.Sums.Total().String(), HBase: h.Cells, HBaseSum: h.Sums.Total().String()}
		}
		unit.Verified = s.count.Verdict() == verify.Match
	}
	return unit
}

// report puts into the result what is known of changes.
func (d *drift) report(res *report.Result) {
	res.SourceReruns = d.reruns
	if !d.judged {
		return
	}
	res.SourceUnknown = d.unknown
	for _, c := range d.changes {
		res.SourceChanges = append(res.SourceChanges, report.PartitionChange{
			Shard: c.Shard, Replica: c.Replica, Node: c.Addr, Partition: c.Partition,
			RowsBefore: c.Before.Rows, RowsAfter: c.After.Rows, Mutated: c.Before.Mutation != c.After.Mutation,
		})
	}
}
