package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A Pointer says which run of a level and period readers should read. A reader
// takes the cells whose timestamps lie in [Since, Until): those of one run.
type Pointer struct {
	Job    string `json:"job"`
	Date   string `json:"date"`
	Level  string `json:"level"`
	Period string `json:"period"`
	Run    string `json:"run"`
	// Repairs is the run that another cluster has and that Run made up for here;
	// empty for a run of its own right.
	Repairs string `json:"repairs,omitempty"`
	// Since and Until bound the timestamps of the run's cells: since ≤ t < until,
	// in milliseconds since 1970. They are the arguments of setTimeRange.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	// Rows is the number of row keys, equal on both sides when it was published.
	Rows uint64 `json:"rows"`
	// Verified is the level of verification that the run passed.
	Verified string `json:"verified"`
	// At is when the rows became available.
	At time.Time `json:"at"`
	// Table is the HBase table, and Family the family of the cells.
	Table  string `json:"table"`
	Family string `json:"family"`
	// RowKey is the template of the keys, with the salt's buckets, if any.
	RowKey string `json:"row_key"`
	// Dimensions and Metrics describe the key's fields and the cells, so that
	// a reader can decode them without asking ClickHouse.
	Dimensions []Field `json:"dimensions"`
	Metrics    []Field `json:"metrics"`
}

// A Field is a dimension of a key or a metric of a cell.
type Field struct {
	Name string `json:"name"`
	// Type is the ClickHouse type of the value.
	Type string `json:"type"`
	// Column and Encode say of a metric where its cells are and how they are
	// written; empty in pointers of versions before they were kept.
	Column string `json:"column,omitempty"`
	Encode string `json:"encode,omitempty"`
}

// Publish moves the pointer of p's job, date, level and period to p. It is one
// compare-and-set: a reader sees the old pointer or the new one. A pointer never
// goes back: one whose cells are newer than p's is left, and the error is
// [ErrLost], since the run that moved it can only have had the lease after p's.
func (l *Ledger) Publish(ctx context.Context, p Pointer) error {
	k := key("pub", p.Job, p.Date, p.Level, p.Period)
	return l.update(ctx, k, func(old []byte) (any, error) {
		if old == nil {
			return p, nil
		}
		var before Pointer
		if err := json.Unmarshal(old, &before); err != nil {
			return nil, broken(k, err)
		}
		if before.Since > p.Since {
			return nil, failure.New(failure.Transient, fmt.Errorf("%w: run %s has published after it", ErrLost, before.Run), "")
		}
		return p, nil
	})
}

// Pointers gives the published pointers of a job for a date, or for all dates
// when date is empty, ordered by date, level and period.
func (l *Ledger) Pointers(ctx context.Context, job, date string) ([]Pointer, error) {
	prefix := key("pub", job) + "/"
	if date != "" {
		prefix = key("pub", job, date) + "/"
	}
	var all []Pointer
	err := l.store.Scan(ctx, prefix, func(k string, value []byte) error {
		var p Pointer
		if err := json.Unmarshal(value, &p); err != nil {
			return broken(k, err)
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the published pointers of job %s: %w", job, err)
	}
	return all, nil
}
