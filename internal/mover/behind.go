package mover

import (
	"context"
	"slices"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// A standing is what a cluster has published for the date.
type standing struct {
	oldest, newest string // runs of the job's levels and periods; see [generations]
	own            bool   // all are of the job as it is now
}

// measure gives the run that a cluster must have to need nothing, with which of
// the clusters are behind it. It is empty if no cluster is to be left alone: where
// none has a run of the job as it is now, where another job's is newer than that,
// since readers of that cluster would go back, and where no cluster is behind.
func measure(all []standing) (run string, behind []bool) {
	for _, s := range all {
		if s.own {
			run = max(run, s.oldest)
		}
	}
	behind = make([]bool, len(all))
	for i, s := range all {
		if !s.own && s.newest > run {
			return "", nil
		}
		behind[i] = !s.own || s.oldest < run
	}
	if run == "" || !slices.Contains(behind, true) {
		return "", nil
	}
	return run, behind
}

// leaveGoodAlone finds out whether some clusters are behind others: they have
// nothing published for the date, or an older run, while another has a run of the
// job as it is now. Then the run is for those alone, and brings them up to it.
func (d *clusters) leaveGoodAlone(ctx context.Context) error {
	standings := map[*target]standing{}
	err := d.each(ctx, func(t *target) (err error) {
		standings[t], err = t.standing(ctx)
		return err
	})
	if err != nil {
		return err
	}
	live := d.live()
	var all []standing
	for _, t := range live {
		all = append(all, standings[t])
	}
	run, behind := measure(all)
	if run == "" {
		return nil // all begin anew
	}
	for i, t := range live {
		if behind[i] {
			t.repairs = run
			d.Log.Info("a cluster is behind and is brought up to the others; they are left alone", "cluster", t.name, "run", run)
			continue
		}
		d.mu.Lock()
		t.upToDate = true
		d.mu.Unlock()
	}
	return nil
}

func (d *hbaseTable) standing(ctx context.Context) (s standing, err error) {
	pointers, err := d.ledger.Pointers(ctx, d.Job.Name, day(d.Date))
	if err != nil {
		return s, err
	}
	own := ownPointers(d.Job.Units(d.Date), pointers)
	s.oldest, s.newest = generations(own)
	if s.newest == "" {
		return s, nil
	}
	s.own, err = d.madeBy(ctx, own, d.Job.Hash())
	return s, err
}

// ownPointers gives the pointer of each level and period; one that is not there is
// nil.
func ownPointers(units []job.Unit, pointers []ledger.Pointer) []*ledger.Pointer {
	own := make([]*ledger.Pointer, len(units))
	for i, u := range units {
		at := slices.IndexFunc(pointers, func(p ledger.Pointer) bool { return p.Level == u.Code && p.Period == string(u.Period.Period) })
		if at >= 0 {
			own[i] = &pointers[at]
		}
	}
	return own
}

// generations are the oldest and the newest run that the levels and periods of a
// cluster stand for: the published one, or the one of another cluster that it made
// up for. Run ids sort by time; empty is the oldest where something is not
// published.
func generations(own []*ledger.Pointer) (oldest, newest string) {
	for i, p := range own {
		run := ""
		if p != nil {
			run = p.Run
			if p.Repairs != "" {
				run = p.Repairs
			}
		}
		if i == 0 || run < oldest {
			oldest = run
		}
		newest = max(newest, run)
	}
	return oldest, newest
}

// madeBy tells whether the published runs were of a job with the hash: another
// job's rows are no measure.
func (d *hbaseTable) madeBy(ctx context.Context, own []*ledger.Pointer, hash string) (bool, error) {
	runs, err := d.ledger.Runs(ctx, d.Job.Name)
	if err != nil {
		return false, err
	}
	for _, p := range own {
		if p != nil && !slices.ContainsFunc(runs, func(r ledger.Run) bool { return r.ID == p.Run && r.JobHash == hash }) {
			return false, nil
		}
	}
	return true, nil
}
