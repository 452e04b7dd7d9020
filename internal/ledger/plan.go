package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// planRow is the last plan for a job and date. There is one row for both, not
// one for each run: a plan of many slices is large, and only the last is of use.
type planRow struct {
	Run  string `json:"run"`
	Hash string `json:"hash"`
	// Plan is JSON, compressed.
	Plan []byte `json:"plan"`
}

// SavePlan stores the plan of a run in place of the one before for the same job
// and date. plan is encoded as JSON.
func (l *Ledger) SavePlan(ctx context.Context, job, date, run, hash string, plan any) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	err := json.NewEncoder(w).Encode(plan)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("encoding the plan: %w", err)
	}
	return l.replace(ctx, key("plan", job, date), planRow{run, hash, packed.Bytes()})
}

// Plan reads the last plan for a job and date into what plan points to, and
// gives the run that made it; empty, with plan untouched, if there is none.
func (l *Ledger) Plan(ctx context.Context, job, date string, plan any) (run string, err error) {
	k := key("plan", job, date)
	value, err := l.store.Get(ctx, k)
	if err != nil || value == nil {
		return "", err
	}
	var row planRow
	if err := json.Unmarshal(value, &row); err != nil {
		return "", broken(k, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(row.Plan))
	if err != nil {
		return "", broken(k, err)
	}
	text, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(text, plan)
	}
	if err != nil {
		return "", broken(k, err)
	}
	return row.Run, nil
}
