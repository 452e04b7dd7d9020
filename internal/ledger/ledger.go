// Package ledger keeps what has to outlive a process: who may run a job for a
// date, the timestamps that runs put their cells at, the runs themselves, and
// the pointers by which readers find the published one. It lives in a table
// beside the data, so a run needs no disk.
//
// Every row has one cell with JSON. The keys are
//
//	lease/<job>/<date>                  who runs the job for the date
//	clock/<table>                       the last timestamp used in a data table
//	table/<table>/<job>                 a job that writes to a data table
//	run/<job>/<date>/<run>              one run and its outcome
//	plan/<job>/<date>                   the last run's plan
//	pub/<job>/<date>/<level>/<period>   the published run of a level and period
//
// Names are escaped in keys (url.PathEscape), so that no name can reach into
// another's rows. Readers may rely on the pub rows; see [Pointer].
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// Table is the name of the ledger's table in HBase.
const Table = "ck2hbase_ledger"

// A Store holds small values by key and can compare and set one of them.
type Store interface {
	// Get gives the value of a key, nil when it is absent.
	Get(ctx context.Context, key string) ([]byte, error)
	// CompareAndPut puts value if the key holds exactly expected, nil meaning
	// that it is absent, and returns whether the key holds value now. No two
	// writers put the same value, so that a put whose answer was lost can be
	// repeated. After an error either may be true.
	CompareAndPut(ctx context.Context, key string, expected, value []byte) (bool, error)
	// Scan calls fn for each key with the prefix, in byte order of the keys.
	Scan(ctx context.Context, prefix string, fn func(key string, value []byte) error) error
}

// A Ledger reads and writes the rows of a [Store].
type Ledger struct {
	store Store
	log   *slog.Logger
	// now is the clock of T; leases use none but the time that passes here.
	now func() time.Time
}

// New makes a ledger over a store.
func New(store Store, log *slog.Logger) *Ledger {
	return &Ledger{store: store, log: log, now: time.Now}
}

func key(parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// NextTimestamp gives the timestamp T, in milliseconds since 1970, for a run
// that writes to an HBase table: the present, but above every T that was given
// for the table before. It is stored before it is returned, so that no other
// run of any job puts cells at it, and a clock that jumps back does no harm.
func (l *Ledger) NextTimestamp(ctx context.Context, table, run string) (int64, error) {
	k := key("clock", table)
	for {
		old, err := l.store.Get(ctx, k)
		if err != nil {
			return 0, fmt.Errorf("reading the last timestamp of table %s: %w", table, err)
		}
		var last clockRow
		if old != nil {
			if err := json.Unmarshal(old, &last); err != nil {
				return 0, broken(k, err)
			}
		}
		t := max(l.now().UnixMilli(), last.T+1)
		data, err := json.Marshal(clockRow{t, run})
		if err != nil {
			return 0, err
		}
		ok, err := l.store.CompareAndPut(ctx, k, old, data)
		if err != nil {
			return 0, fmt.Errorf("storing the timestamp of the run: %w", err)
		}
		if ok {
			return t, nil
		}
	}
}

type clockRow struct {
	T   int64  `json:"t"`
	Run string `json:"run"`
}

func broken(key string, err error) error {
	return failure.New(failure.Sink, fmt.Errorf("ledger row %q cannot be read: %w", key, err),
		"a newer version of ck2hbase may have written it; if not, delete the row")
}

// A State is where a run stands.
type State string

// The states of a run.
const (
	Running   State = "running"
	Published State = "published"
	Failed    State = "failed"
)

// A Run is the record of one run.
type Run struct {
	ID      string `json:"run"`
	Job     string `json:"job"`
	Date    string `json:"date"`
	JobHash string `json:"job_hash"`
	// Plan is the hash of the plan, see [Ledger.SavePlan].
	Plan    string    `json:"plan,omitempty"`
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	Changed time.Time `json:"changed"`
	// T is the timestamp of all cells of the run, ms since 1970.
	T int64 `json:"t"`
	// Again are the timestamps of what was gathered again, since the source had changed.
	Again []int64 `json:"again,omitempty"`
	// Table and Family are where the cells are.
	Table  string `json:"table"`
	Family string `json:"family"`
	// Cleared says that the cells of a failed run have been removed.
	Cleared bool `json:"cleared,omitempty"`
	// Host and PID say where it ran.
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Rows are the rows that were acknowledged.
	Rows int64 `json:"rows"`
	// Error is what ended a failed run.
	Error string `json:"error,omitempty"`
}

// SaveRun stores a run's record over the one before.
func (l *Ledger) SaveRun(ctx context.Context, r Run) error {
	r.Changed = l.now().UTC()
	return l.replace(ctx, key("run", r.Job, r.Date, r.ID), r)
}

// Runs gives the records of a job's runs, in the order of dates and ids.
func (l *Ledger) Runs(ctx context.Context, job string) ([]Run, error) {
	var all []Run
	err := l.store.Scan(ctx, key("run", job)+"/", func(k string, value []byte) error {
		var r Run
		if err := json.Unmarshal(value, &r); err != nil {
			return broken(k, err)
		}
		all = append(all, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the runs of job %s: %w", job, err)
	}
	return all, nil
}

// replace sets a key to a value whatever it holds.
func (l *Ledger) replace(ctx context.Context, k string, value any) error {
	return l.update(ctx, k, func([]byte) (any, error) { return value, nil })
}

// update sets a key to what next makes of its present value, nil if there is none.
func (l *Ledger) update(ctx context.Context, k string, next func(old []byte) (any, error)) error {
	for range 10 {
		old, err := l.store.Get(ctx, k)
		if err != nil {
			return fmt.Errorf("ledger row %q: %w", k, err)
		}
		value, err := next(old)
		if err != nil {
			return err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("ledger row %q: %w", k, err)
		}
		ok, err := l.store.CompareAndPut(ctx, k, old, data)
		if err != nil {
			return fmt.Errorf("ledger row %q: %w", k, err)
		}
		if ok {
			return nil
		}
	}
	return failure.New(failure.Transient, fmt.Errorf("ledger row %q: %w", k, errContended), "")
}

var errContended = errors.New("other processes keep changing it")
