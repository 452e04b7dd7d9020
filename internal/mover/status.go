package mover

import (
	"context"
	"log/slog"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// A ClusterStatus is how a job and date stand in one cluster.
type ClusterStatus struct {
	Cluster string `json:"cluster"`
	// State is "published", "behind" where another cluster has a newer run,
	// "nothing published", or "unreachable".
	State string `json:"state"`
	// Error is why nothing is known.
	Error string `json:"error,omitempty"`
	// Complete says that all levels and periods of the job are published, by
	// whichever run.
	Complete bool `json:"complete"`
	// Units are the published levels and periods.
	Units []ledger.Pointer `json:"units,omitempty"`
	// Last is the newest run for the date, whatever became of it; nil if there was none.
	Last *ledger.Run `json:"last_run,omitempty"`

	made string
}

// Status asks the ledgers of all clusters of a job what they have for a date. It
// is an error if none can be asked.
func Status(ctx context.Context, j *job.Job, date time.Time, log *slog.Logger) ([]ClusterStatus, error) {
	if j.File != nil {
		return nil, j.ErrorAt("sink.file", failure.Errorf(failure.Usage, "the job writes files, and there is no ledger to read"))
	}
	var all []ClusterStatus
	var first error
	asked, newest := false, ""
	for _, c := range j.HBase.Clusters {
		s, err := clusterStatus(ctx, j, date, c, log)
		if err != nil {
			if first == nil {
				first = err
			}
			s = ClusterStatus{State: "unreachable", Error: err.Error()}
		}
		asked = asked || err == nil
		newest = max(newest, s.made)
		s.Cluster = c.Name
		all = append(all, s)
	}
	for i := range all {
		if s := &all[i]; s.State == "published" && s.made < newest {
			s.State = "behind"
		}
	}
	if !asked {
		return nil, first
	}
	return all, nil
}

func clusterStatus(ctx context.Context, j *job.Job, date time.Time, c job.HBaseCluster, log *slog.Logger) (ClusterStatus, error) {
	s := ClusterStatus{State: "nothing published"}
	hb, err := hbase.Dial(ctx, c, log)
	if err != nil {
		return s, err
	}
	defer hb.Close()
	if table, err := hb.Table(ctx, ledger.Table); err != nil || table == nil {
		return s, err
	}
	l := ledger.New(&hbaseStore{hb}, log)
	if s.Units, err = l.Pointers(ctx, j.Name, day(date)); err != nil {
		return s, err
	}
	if len(s.Units) > 0 {
		s.State = "published"
		s.made, _ = generations(ownPointers(j.Units(date), s.Units))
		s.Complete = s.made != ""
	}
	runs, err := l.Runs(ctx, j.Name)
	for i := range runs {
		if runs[i].Date == day(date) {
			s.Last = &runs[i]
		}
	}
	return s, err
}
