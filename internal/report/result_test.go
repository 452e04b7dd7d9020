package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

func published() *report.Result {
	return &report.Result{
		Job: "shop_source", Date: "2026-11-29", Run: "20261129-1a2b3c", State: report.Published,
		Sink: "hbase table shop_source", Timestamp: 1795910400123, Since: 1795910400123, Until: 1795910400124,
		Units: []report.UnitResult{
			{Level: "11", Period: "BY_LAST_DAYS_30", Start: "2026-10-31", End: "2026-11-29", Slices: 3,
				SourceRows: new(uint64(30000000)), ClickHouse: new(uint64(2512345)), HBase: new(uint64(2512345)), Verified: true},
			{Level: "10", Period: "DAY", Start: "2026-11-29", End: "2026-11-29", Slices: 12, Splits: 2,
				SourceRows: new(uint64(999)), ClickHouse: new(uint64(0)), HBase: new(uint64(0)), Verified: true},
		},
		Totals: report.Totals{RowsRead: 60000999, RowsWritten: 2512345, Cells: 7537035, Bytes: 412345678},
		Phases: []report.PhaseTime{{Phase: report.Preflight, Seconds: 0.31}, {Phase: report.Plan, Seconds: 1.24}, {Phase: report.Scatter, Seconds: 40.06},
			{Phase: report.Verify, Seconds: 12.5}, {Phase: report.Publish, Seconds: 0.02}},
		Seconds: 54.13,
	}
}

func mismatch() *report.Result {
	r := published()
	r.Units[0].HBase, r.Units[0].Verified = new(uint64(2512344)), false
	r.Units[1].HBase, r.Units[1].ClickHouse, r.Units[1].SourceRows, r.Units[1].Verified = nil, nil, nil, false
	r.Totals.SinkRetries, r.Totals.SpooledBytes = 3, 25268878
	r.Units[0].SourceChanged, r.Units[0].Since, r.Units[0].Until = true, 1795910400123, 1795910400124
	r.SourceReruns, r.SourceUnknown = 2, "it cannot be told whether the source changed: of a shard no node was reached both before and after"
	for i := range 7 {
		r.SourceChanges = append(r.SourceChanges, report.PartitionChange{Shard: 2, Replica: 1, Node: "ck2:9000", Partition: fmt.Sprintf("2026112%d", i),
			RowsBefore: uint64(1000 * i), RowsAfter: 1234567, Mutated: i == 1})
	}
	err := failure.New(failure.Mismatch, errors.New("level 11, BY_LAST_DAYS_30: 2512345 groups in ClickHouse,\n2512344 row keys in HBase"), "run again; if it stays, look for two values with one key")
	r.State, r.Error = report.StateOf(err), report.NewError(err)
	return r
}

func TestTable(t *testing.T) {
	locked := failure.New(failure.Locked, errors.New("another run holds the lease"), "")
	for name, r := range map[string]*report.Result{
		"published": published(), "mismatch": mismatch(),
		"locked": {Job: "j", Date: "2026-11-29", State: report.StateOf(locked), Error: report.NewError(locked)},
	} {
		var out bytes.Buffer
		if err := r.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+name+".txt", out.String())
	}
}

func TestJSON(t *testing.T) {
	for name, r := range map[string]*report.Result{"published": published(), "mismatch": mismatch()} {
		var out bytes.Buffer
		if err := r.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+name+".json", out.String())
		var back report.Result
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, &back); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	}
}

func TestStates(t *testing.T) {
	for err, want := range map[error]report.State{
		nil:                                          report.Published,
		failure.Errorf(failure.Mismatch, "x"):        report.Unverified,
		failure.Errorf(failure.Locked, "x"):          report.Locked,
		failure.Errorf(failure.Transient, "x"):       report.Interrupted,
		context.Canceled:                             report.Interrupted,
		failure.Errorf(failure.Sink, "x"):            report.Failed,
		errors.New("a bug"):                          report.Failed,
		failure.Errorf(failure.Preflight, "refused"): report.Failed,
	} {
		if got := report.StateOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if report.NewError(nil) != nil {
		t.Error("an error of nothing")
	}
}

// brokenPipe is a standard output that is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriteErrorsAreReported(t *testing.T) {
	if published().WriteTable(brokenPipe{}) == nil || published().WriteJSON(brokenPipe{}) == nil {
		t.Error("a report that was not written counts as written")
	}
}
