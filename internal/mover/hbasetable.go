package mover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	hbasesink "github.com/ck2hbase/ck2hbase/internal/sink/hbase"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

const (
	// farewell bounds what a run still writes to the ledger when it ends.
	farewell = 4 * time.Second
	// minVersions is what a family must keep: the published run and the next one.
	minVersions = 2
	// scanWorkers is the number of regions that are counted at once.
	scanWorkers = 4
)

// hbaseTable is the job's table in one HBase cluster, with the ledger there.
type hbaseTable struct {
	*Mover
	run     string
	started time.Time
	cluster int // in the job

	src    *source
	hb     *hbase.Client
	ledger *ledger.Ledger
	lease  *ledger.Lease
	leased context.Context
	record ledger.Run
	stamps map[int]int64 // the timestamps of the units' cells
	// repairs is the run of another cluster that this one makes up for, if any.
	repairs string
	looked  bool // the regions' shares were looked at
	noted   []string
	blind   []bool // the columns whose values are not compared, as far as it goes
	fsync   bool   // the table wants the log on the disk before a row is acknowledged
}

var _ destination = (*hbaseTable)(nil)

func newHBaseTable(m *Mover, run string, started time.Time, cluster int) *hbaseTable {
	return &hbaseTable{Mover: m, run: run, started: started, cluster: cluster, stamps: map[int]int64{}}
}

func (d *hbaseTable) String() string {
	return fmt.Sprintf("hbase %s, table %s", d.Job.HBase.Clusters[d.cluster].Name, d.Job.HBase.Table)
}

func (d *hbaseTable) holds() string { return "row keys in HBase" }

func (d *hbaseTable) open(ctx context.Context, src *source) error {
	d.src = src
	var err error
	if d.hb, err = hbase.Dial(ctx, d.Job.HBase.Clusters[d.cluster], d.Log); err != nil {
		return d.Job.ErrorAt(fmt.Sprintf("sink.hbase.clusters[%d]", d.cluster), err)
	}
	if wal := d.Job.HBase.WAL; wal == job.WALAsync || wal == job.WALOff {
		d.note("wal: %s: rows that are acknowledged, counted and published are lost if a region server dies before they are flushed", wal)
	}
	d.ledger = ledger.New(&hbaseStore{d.hb}, d.Log)
	if err := d.checkTable(ctx); err != nil {
		return inPreflight(err)
	}
	return nil
}

func (d *hbaseTable) close() {
	if d.hb != nil {
		d.hb.Close()
	}
}

// checkTable looks at the table if it exists; an absent one will be made.
func (d *hbaseTable) checkTable(ctx context.Context) error {
	h := d.Job.HBase
	table, err := d.hb.Table(ctx, h.Table)
	if err != nil || table == nil {
		return err
	}
	if _, ok := table.Families[h.Family]; !ok {
		return d.Job.ErrorAt("sink.hbase.family", failure.New(failure.Preflight,
			fmt.Errorf("table %s has no family %q", h.Table, h.Family),
			"its families: "+strings.Join(slices.Sorted(maps.Keys(table.Families)), ", ")))
	}
	if versions, err := strconv.Atoi(table.Families[h.Family]["VERSIONS"]); err == nil && versions < minVersions {
		return d.Job.ErrorAt("sink.hbase.table", failure.New(failure.Preflight,
			fmt.Errorf("family %s of table %s keeps %d version of a cell: while a run writes, readers would lose the run before it", h.Family, h.Table, versions),
			fmt.Sprintf("alter '%s', {NAME => '%s', VERSIONS => %d} in the HBase shell", h.Table, h.Family, minVersions)))
	}
	if !table.Enabled {
		return d.Job.ErrorAt("sink.hbase.table", failure.New(failure.Preflight,
			fmt.Errorf("table %s is disabled", h.Table), "enable it in the HBase shell"))
	}
	d.compareTable(table)
	return nil
}

// enter takes the lease of the job and date, and begins the run.
func (d *hbaseTable) enter(ctx context.Context) (context.Context, error) {
	err := d.acquire(ctx)
	if err == nil {
		if err = d.register(d.leased); err != nil {
			d.leave(ctx, 0, err)
		}
	}
	return d.leased, err
}

// acquire takes the lease.
func (d *hbaseTable) acquire(ctx context.Context) error {
	err := ensureLedger(ctx, d.hb)
	if err == nil {
		d.lease, d.leased, err = d.ledger.Acquire(ctx, d.Job.Name, day(d.Date), d.owner())
	}
	return err
}

func (d *hbaseTable) owner() ledger.Owner {
	host, _ := os.Hostname() // only for messages
	return ledger.Owner{Run: d.run, Host: host, PID: os.Getpid()}
}

// register removes what earlier runs have left and puts the run's record into
// the ledger. After an error leave is to be called.
func (d *hbaseTable) register(ctx context.Context) error {
	owner := d.owner()
	d.record = ledger.Run{
		ID: d.run, Job: d.Job.Name, Date: day(d.Date), JobHash: d.Job.Hash(),
		State: ledger.Running, Started: d.started.UTC(), Host: owner.Host, PID: owner.PID,
		Table: d.Job.HBase.Table, Family: d.Job.HBase.Family,
	}
	if err := d.checkOthers(ctx); err != nil {
		return err
	}
	if err := d.clearAway(ctx); err != nil {
		return err
	}
	// From here on a successor can find out what this run has left.
	return d.ledger.SaveRun(ctx, d.record)
}

// checkOthers refuses a table in which another job writes keys that may be the
// same as this one's.
func (d *hbaseTable) checkOthers(ctx context.Context) error {
	h := d.Job.HBase
	use := ledger.TableUse{Job: d.Job.Name, RowKey: h.RowKey}
	if h.Salt != nil {
		use.SaltDigits = h.Salt.Width()
	}
	others, err := d.ledger.UseTable(ctx, h.Table, use)
	if err != nil || len(others) == 0 {
		return err
	}
	other := others[0]
	return d.Job.ErrorAt("sink.hbase.row_key", failure.New(failure.Preflight,
		fmt.Errorf("job %s writes to table %s too, and its keys may be the same: its row_key is %s", other.Job, h.Table, other.RowKey),
		fmt.Sprintf("begin row_key with a literal that no other job's begins with (after {salt}, if any), or use another table; if job %s is no more, delete row %q of %s",
			other.Job, ledger.UseRow(h.Table, other.Job), ledger.Table)))
}

// leave records the end of the run and lets the lease go. What cannot be written
// any more is logged: it is not needed.
func (d *hbaseTable) leave(ctx context.Context, rows int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	d.record.State, d.record.Rows = ledger.Published, rows
	if err != nil {
		d.record.State, d.record.Error = ledger.Failed, err.Error()
	}
	if saveErr := d.ledger.SaveRun(ctx, d.record); saveErr != nil {
		d.Log.Warn("could not record the end of the run", "error", saveErr)
	}
	d.release(ctx)
}

// release lets the lease go.
func (d *hbaseTable) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if releaseErr := d.lease.Release(ctx); releaseErr != nil && !errors.Is(releaseErr, ledger.ErrLost) {
		d.Log.Warn("could not let the lease go; it ends by itself", "error", releaseErr)
	}
}

func (d *hbaseTable) keepPlan(ctx context.Context, plan *scatter.Plan) error {
	d.record.Plan = plan.ID
	return d.ledger.SavePlan(ctx, d.Job.Name, day(d.Date), d.run, plan.ID, plan)
}

// begin makes the table if there is none, and stores the round's timestamp.
func (d *hbaseTable) begin(ctx context.Context, p *part) (roundSink, error) {
	if err := d.prepareTable(ctx, p); err != nil {
		return roundSink{}, err
	}
	t, err := d.stamp(ctx, p.units)
	if err != nil {
		return roundSink{}, err
	}
	h := d.Job.HBase
	s, err := hbasesink.New(hbasesink.Config{
		Client: d.hb, Table: h.Table, Family: h.Family, Columns: h.Columns, Keys: d.src.codec, Cells: d.src.cells,
		Timestamp: t, Batch: h.Batch, Rate: h.Rate, WAL: d.wal(), Gate: d.lease.Sure, Sum: d.Job.Verify.Level == job.VerifyFull, Log: d.Log,
	})
	if err != nil {
		return roundSink{}, err
	}
	d.Rates.add(s)
	return roundSink{Sink: s, tally: func() tally {
		now := s.Stats()
		return tally{now.Rows, now.Cells, now.Bytes, now.Retries, now.Pushbacks, now.Pace}
	}}, nil
}

// wal is that of the job, unless the table's own is safer.
func (d *hbaseTable) wal() job.WAL {
	if d.fsync && d.Job.HBase.WAL == job.WALOn {
		return ""
	}
	return d.Job.HBase.WAL
}

// stamp takes a timestamp for the cells of a round. It is in the run's record
// before the first cell is written: whoever comes after a run that died can
// find all that it has left.
func (d *hbaseTable) stamp(ctx context.Context, units []int) (int64, error) {
	t, err := d.ledger.NextTimestamp(ctx, d.Job.HBase.Table, d.run)
	if err != nil {
		return 0, err
	}
	if d.record.T == 0 {
		d.record.T = t
	} else {
		d.record.Again = append(d.record.Again, t)
	}
	if err := d.ledger.SaveRun(ctx, d.record); err != nil {
		return 0, err
	}
	for _, i := range units {
		d.stamps[i] = t
	}
	return t, nil
}

func (d *hbaseTable) times(unit int) (since, until int64) {
	if t := d.stamps[unit]; t != 0 {
		return t, t + 1
	}
	return 0, 0
}

func (d *hbaseTable) count(ctx context.Context, p *part, counts []verify.Count) error {
	c := verify.Checker{
		Codec: d.src.codec,
		Scan: func(ctx context.Context, fn func(key []byte, cells []hbase.CellView) error) error {
			if d.Job.Verify.Level == job.VerifyFull {
				return d.scanCells(ctx, p, func(key []byte, cells []hbase.CellView) error {
					d.seen(cells)
					return fn(key, cells)
				})
			}
			return d.scanKeys(ctx, p, func(key []byte) error { return fn(key, nil) })
		},
	}
	return c.Keys(ctx, &p.plan, counts)
}

func (d *hbaseTable) scanKeys(ctx context.Context, p *part, fn func(key []byte) error) error {
	t := d.stamps[p.units[0]] // one for all of a round
	_, err := d.hb.ScanKeys(ctx, d.Job.HBase.Table, t, t+1, scanWorkers, fn)
	return err
}

func (d *hbaseTable) scanCells(ctx context.Context, p *part, fn func(key []byte, cells []hbase.CellView) error) error {
	t := d.stamps[p.units[0]]
	_, err := d.hb.ScanCells(ctx, d.Job.HBase.Table, t, t+1, scanWorkers, fn)
	return err
}

func (d *hbaseTable) regions(ctx context.Context) ([]hbase.Region, error) {
	return d.hb.Regions(ctx, d.Job.HBase.Table)
}

// forget deletes the cells of units at their timestamps. Readers do not see
// them: nothing points to them.
func (d *hbaseTable) forget(ctx context.Context, units []int) error {
	type id struct {
		level  int
		period job.Period
	}
	all := d.Job.Units(d.Date)
	chosen := map[int64]map[id]bool{}
	for _, i := range units {
		t, u := d.stamps[i], all[i]
		if chosen[t] == nil {
			chosen[t] = map[id]bool{}
		}
		chosen[t][id{u.Level, u.Period.Period}] = true
	}
	h := d.Job.HBase
	for t, these := range chosen {
		_, err := deleteCells(ctx, d.hb, h.Table, h.Family, t, func(key []byte) (bool, error) {
			k, err := d.src.codec.Decode(key)
			if err != nil {
				return false, failure.Errorf(failure.Mismatch, "a row of this run has a key that it cannot have: %w", err)
			}
			return these[id{k.Level, k.Period}], nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *hbaseTable) publish(ctx context.Context, plan *scatter.Plan, rows func(unit int) uint64) error {
	// A process that was stopped for a while may have lost the lease unawares.
	if err := d.lease.Renew(ctx); err != nil {
		return failure.New(failure.Transient, fmt.Errorf("before publishing: %w", err), "")
	}
	now := time.Now().UTC()
	for i := range plan.Units {
		u := &plan.Units[i]
		p := ledger.Pointer{
			Job: d.Job.Name, Date: day(d.Date), Level: u.Level, Period: u.Period, Run: d.run, Repairs: d.repairs,
			Rows: rows(i), Verified: string(d.Job.Verify.Level), At: now,
			Table: d.Job.HBase.Table, Family: d.Job.HBase.Family, RowKey: keyOf(d.Job),
		}
		p.Since, p.Until = d.times(i)
		for j, c := range u.Columns {
			f := ledger.Field{Name: c.Name, Type: c.Type.Name}
			if k := j - (len(u.Columns) - len(d.Job.Metrics)); k < 0 {
				p.Dimensions = append(p.Dimensions, f)
			} else {
				f.Column, f.Encode = cellOf(d.Job, k)
				p.Metrics = append(p.Metrics, f)
			}
		}
		if _, err := d.lease.Sure(ctx); err != nil { // that no pointer goes back is the ledger's part
			return failure.New(failure.Transient, fmt.Errorf("before publishing level %s, period %s: %w", u.Level, u.Period, err), "")
		}
		if err := d.ledger.Publish(ctx, p); err != nil {
			return fmt.Errorf("publishing level %s, period %s: %w", u.Level, u.Period, err)
		}
	}
	return nil
}
