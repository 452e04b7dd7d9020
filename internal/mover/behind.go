package mover

import (
	"context"
	"slices"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// leaveGoodAlone finds out whether some clusters are behind others: they have
// nothing published for the date, or an older run, while another has a run of the
// job as it is now. Then the run is for those alone, and brings them up to it.
func (d *clusters) leaveGoodAlone(ctx context.Context) error {
	made := map[*target]string{}
	same := map[*target]bool{}
	err := d.each(ctx, func(t *target) error {
		pointers, err := t.ledger.Pointers(ctx, d.Job.Name, day(d.Date))
		if err != nil {
			return err
		}
		if made[t] = generation(d.Job.Units(d.Date), pointers); made[t] == "" {
			return nil
		}
		same[t], err = t.madeBy(ctx, pointers, d.Job.Hash())
		return err
	})
	if err != nil {
		return err
	}
	newest := ""
	for t, run := range made {
		if same[t] {
			newest = max(newest, run)
		}
	}
	live := d.live()
	if newest == "" || !slices.ContainsFunc(live, func(t *target) bool { return made[t] < newest }) {
		return nil // all begin anew
	}
	for _, t := range live {
		if made[t] < newest {
			t.repairs = newest
			d.Log.Info("a cluster is behind and is brought up to the others; they are left alone", "cluster", t.name, "run", newest)
			continue
		}
		d.mu.Lock()
		t.upToDate = true
		d.mu.Unlock()
	}
	return nil
}

// generation is the run that all levels and periods of a cluster stand for: the
// published one, or the one of another cluster that it made up for. Run ids sort
// by time; empty means that something is not published.
func generation(units []job.Unit, pointers []ledger.Pointer) string {
	oldest := ""
	for i, u := range units {
		at := slices.IndexFunc(pointers, func(p ledger.Pointer) bool { return p.Level == u.Code && p.Period == string(u.Period.Period) })
		if at < 0 {
			return ""
		}
		run := pointers[at].Run
		if pointers[at].Repairs != "" {
			run = pointers[at].Repairs
		}
		if i == 0 || run < oldest {
			oldest = run
		}
	}
	return oldest
}

// madeBy tells whether the published runs were of a job with the hash: another
// job's rows are no measure.
func (d *hbaseTable) madeBy(ctx context.Context, pointers []ledger.Pointer, hash string) (bool, error) {
	runs, err := d.ledger.Runs(ctx, d.Job.Name)
	if err != nil {
		return false, err
	}
	for _, p := range pointers {
		if !slices.ContainsFunc(runs, func(r ledger.Run) bool { return r.ID == p.Run && r.JobHash == hash }) {
			return false, nil
		}
	}
	return true, nil
}
