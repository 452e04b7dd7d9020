package mover

import (
	"fmt"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

func (r *run) result(err error) *report.Result {
	snapshot := r.Progress.Snapshot()
	res := &report.Result{
		Job: r.Job.Name, Date: day(r.Date), Run: r.id, State: report.StateOf(err), Error: report.NewError(err),
		Sink:   fmt.Sprintf("hbase %s, table %s", r.Job.HBase.Clusters[0].Name, r.Job.HBase.Table),
		Totals: snapshot.Totals(), Phases: snapshot.Phases, Seconds: time.Since(r.started).Seconds(),
	}
	if r.t != 0 {
		res.Timestamp, res.Since, res.Until = r.t, r.t, r.t+1
	}
	if r.plan == nil {
		return res
	}
	for i := range r.plan.Units {
		u := &r.plan.Units[i]
		unit := report.UnitResult{Level: u.Level, Period: u.Period, Start: u.Start, End: u.End, Slices: len(u.Slices)}
		if r.moved != nil {
			unit.Slices += r.moved[i].splits
			unit.Splits = r.moved[i].splits
		}
		if r.moved != nil {
			unit.SourceRows = &r.moved[i].sourceRows
		}
		if r.counts != nil {
			unit.ClickHouse = &r.counts[i].Groups
			if r.counts[i].Checked {
				unit.HBase = &r.counts[i].Keys
			}
			unit.Verified = r.counts[i].Verdict() == verify.Match
			unit.SourceChanged = changed(u, r.moved[i], r.counts[i])
		}
		res.Units = append(res.Units, unit)
	}
	return res
}
