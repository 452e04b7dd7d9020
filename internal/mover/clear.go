package mover

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// clearBatch is the number of rows whose cells are deleted by one request.
const clearBatch = 1000

// clearAway removes what earlier runs of the job have left that readers do not
// see: queries on the servers, and cells. HBase keeps a few versions of a cell,
// and without this the cells of two runs that failed would push those of the
// published run out of the table. Deleting exact versions hides nothing at any
// other timestamp, and no later run writes at one of these again.
func (d *hbaseTable) clearAway(ctx context.Context) error {
	runs, err := d.ledger.Runs(ctx, d.Job.Name)
	if err != nil {
		return err
	}
	pointers, err := d.ledger.Pointers(ctx, d.Job.Name, "")
	if err != nil {
		return err
	}
	published := map[string][]ledger.Pointer{} // by run
	for _, p := range pointers {
		published[p.Run] = append(published[p.Run], p)
	}
	for _, old := range runs {
		err := d.clearRun(ctx, old, published[old.ID])
		if err != nil && old.Table != d.Job.HBase.Table && ctx.Err() == nil {
			// Another table, which the job wrote to before: this run hides nothing there.
			d.Log.Warn("could not remove what an earlier run has left", "run", old.ID, "table", old.Table, "error", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("removing what run %s has left: %w", old.ID, err)
		}
	}
	return nil
}

// clearRun clears away what a run has left that the pointers to it do not show.
func (d *hbaseTable) clearRun(ctx context.Context, old ledger.Run, pointers []ledger.Pointer) error {
	changed := false
	if old.State == ledger.Running && old.Date == d.record.Date {
		// We hold the lease, so that process is dead.
		changed = true
		killLeftovers(ctx, d.src.client, d.Log, old.ID)
		old.State, old.Error = ledger.Failed, "the process ended without a word"
		if len(pointers) == len(d.Job.Units(d.Date)) {
			old.State, old.Error = ledger.Published, ""
		}
	}
	if old.State == ledger.Failed && old.T != 0 && !old.Cleared {
		if err := d.wipe(ctx, old, pointers); err != nil {
			return err
		}
		old.Cleared, changed = true, true
	}
	if !changed {
		return nil
	}
	return d.ledger.SaveRun(ctx, old)
}

// killLeftovers ends the queries of a dead run: an old server runs an
// aggregation to its end when its client has gone. What cannot be ended has
// limits that end it.
func killLeftovers(ctx context.Context, client *clickhouse.Client, log *slog.Logger, id string) {
	for _, n := range client.Nodes() {
		killed, err := n.KillLeftovers(ctx, "ck2hbase-"+id+"-")
		if err != nil {
			log.Warn("could not end the queries of a dead run", "run", id, "node", n.Addr, "error", err)
		} else if killed > 0 {
			log.Info("ended the queries of a dead run", "run", id, "node", n.Addr, "queries", killed)
		}
	}
}

// wipe deletes the cells of a run that was never published, or, of one that ended
// while it moved the pointers, those of the levels and periods that have other ones.
func (d *hbaseTable) wipe(ctx context.Context, old ledger.Run, pointers []ledger.Pointer) error {
	if !d.readsKeysOf(pointers) {
		d.Log.Warn("a run was published in part with other keys, levels or periods: what else it has left stays", "run", old.ID, "date", old.Date)
		return nil
	}
	table, err := d.hb.Table(ctx, old.Table)
	if err != nil || table == nil {
		return err
	}
	if _, ok := table.Families[old.Family]; !ok {
		return nil
	}
	if !table.Enabled {
		return failure.Errorf(failure.Sink, "table %s is disabled", old.Table)
	}
	all := 0
	for _, t := range append([]int64{old.T}, old.Again...) {
		rows, err := deleteCells(ctx, d.hb, old.Table, old.Family, t, func(key []byte) (bool, error) {
			return !d.shown(key, t, pointers), nil
		})
		all += rows
		if err != nil {
			return err
		}
	}
	if all > 0 {
		d.Log.Info("removed the cells of a run that was not published", "run", old.ID, "date", old.Date, "rows", all)
	}
	return nil
}

// readsKeysOf tells whether the job as it is now tells from a key which of the
// pointers shows its row.
func (d *hbaseTable) readsKeysOf(pointers []ledger.Pointer) bool {
	return !slices.ContainsFunc(pointers, func(p ledger.Pointer) bool {
		return p.RowKey != keyOf(d.Job) || !slices.ContainsFunc(d.Job.Units(d.Date), func(u job.Unit) bool {
			return u.Code == p.Level && string(u.Period.Period) == p.Period
		})
	})
}

// shown tells whether readers see the cells of a key at t through one of a run's
// pointers. A key that cannot be read is none that this run will write to: it may stay.
func (d *hbaseTable) shown(key []byte, t int64, pointers []ledger.Pointer) bool {
	if len(pointers) == 0 {
		return false
	}
	k, err := d.src.codec.Decode(key)
	return err != nil || slices.ContainsFunc(pointers, func(p ledger.Pointer) bool {
		return p.Level == d.Job.Levels[k.Level].Code && p.Period == string(k.Period) && p.Since <= t && t < p.Until
	})
}

// deleteCells deletes the cells at exactly one timestamp from the rows whose
// keys are chosen, and gives the number of these rows.
func deleteCells(ctx context.Context, hb *hbase.Client, table, family string, t int64, chosen func(key []byte) (bool, error)) (int, error) {
	var mu sync.Mutex
	var keys [][]byte
	all := 0
	flush := func(keys [][]byte) error {
		if len(keys) == 0 {
			return nil
		}
		return hb.DeleteVersion(ctx, table, family, keys, t)
	}
	_, err := hb.ScanKeys(ctx, table, t, t+1, scanWorkers, func(key []byte) error {
		if ok, err := chosen(key); err != nil || !ok {
			return err
		}
		mu.Lock()
		all++
		keys = append(keys, bytes.Clone(key))
		var full [][]byte
		if len(keys) == clearBatch {
			full, keys = keys, nil
		}
		mu.Unlock()
		return flush(full)
	})
	if err == nil {
		err = flush(keys)
	}
	return all, err
}
