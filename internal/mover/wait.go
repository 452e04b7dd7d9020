package mover

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// pollEvery is how often Wait looks at the pointers.
const pollEvery = 10 * time.Second

// Wait waits until all levels and periods of a job are published for a date: in all
// of its clusters, or in one with require: any. A cluster that cannot be reached
// is asked again. The error is transient if timeout passes before, or ctx ends;
// timeout 0 looks once.
func Wait(ctx context.Context, j *job.Job, date time.Time, timeout time.Duration, log *slog.Logger) ([]ClusterStatus, error) {
	end := time.Now().Add(timeout)
	told := ""
	for {
		all, err := Status(ctx, j, date, log)
		if err == nil && available(j, all) {
			return all, nil
		}
		if failure.ClassOf(err) == failure.Usage {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, interruptedBy(ctx)
		}
		missing := missing(j.Units(date), all, err)
		left := time.Until(end)
		if left <= 0 {
			return all, failure.New(failure.Transient, fmt.Errorf("job %s for %s is not published after %v: %s", j.Name, day(date), timeout, missing),
				"see the log of its run, and ck2hbase status")
		}
		if missing != told {
			log.Info("not published yet, waiting", "missing", missing, "for", left.Round(time.Second).String())
			told = missing
		}
		timer := time.NewTimer(min(pollEvery, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, interruptedBy(ctx)
		}
	}
}

// available tells whether readers find all of a date where the job promises it.
func available(j *job.Job, all []ClusterStatus) bool {
	incomplete := func(s ClusterStatus) bool { return !s.Complete }
	if j.HBase.Require == job.RequireAny {
		return slices.ContainsFunc(all, func(s ClusterStatus) bool { return s.Complete })
	}
	return !slices.ContainsFunc(all, incomplete)
}

// missing says what is not there yet.
func missing(units []job.Unit, all []ClusterStatus, err error) string {
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, s := range all {
		var lacks []string
		for i, p := range ownPointers(units, s.Units) {
			if p == nil {
				lacks = append(lacks, fmt.Sprintf("level %s, period %s", units[i].Code, units[i].Period.Period))
			}
		}
		switch {
		case s.Error != "":
			texts = append(texts, s.Cluster+": "+s.Error)
		case len(lacks) > 0:
			texts = append(texts, s.Cluster+": "+strings.Join(lacks, "; "))
		}
		if r := s.Last; r != nil && r.State == ledger.Failed && len(lacks) > 0 {
			texts = append(texts, fmt.Sprintf("run %s failed: %s", r.ID, r.Error))
		}
	}
	return strings.Join(texts, "; ")
}
