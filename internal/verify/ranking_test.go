package verify_test

import (
	"context"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// TestRankingOfTwoMinds: an attempt that computed another metric for a group has
// left a second row of it, and the count of keys says so.
func TestRankingOfTwoMinds(t *testing.T) {
	integer, err := row.ParseType("UInt64")
	if err != nil {
		t.Fatal(err)
	}
	codec, err := rowkey.Compile(rowkey.Config{
		Template: "{tp}|{date}|{pv:desc:be8}{shop:be8}", Dims: []rowkey.Dim{{Name: "shop", Type: integer}}, Metrics: []row.Column{{Name: "pv", Type: integer}},
		Levels: []job.Level{{Code: "1", Dimensions: []int{0}}}, Periods: []job.Period{"DAY"},
	})
	if err != nil {
		t.Fatal(err)
	}
	date := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	unit := job.Unit{Code: "1", Period: job.Day.Span(date), Date: date}
	var keys [][]byte
	add := func(shop, pv uint64) {
		key, err := codec.AppendKey(nil, unit, []row.Value{{Kind: row.UInt, Num: shop}, {Kind: row.UInt, Num: pv}})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	count := func() verify.Count {
		c := verify.Checker{Codec: codec, Scan: func(_ context.Context, fn func([]byte, []hbase.CellView) error) error {
			for _, key := range keys {
				if err := fn(key, nil); err != nil {
					return err
				}
			}
			return nil
		}}
		counts := []verify.Count{{Groups: 2}}
		if err := c.Keys(t.Context(), &scatter.Plan{Units: []scatter.UnitPlan{{Unit: unit}}}, counts); err != nil {
			t.Fatal(err)
		}
		return counts[0]
	}
	add(1, 10)
	add(2, 10)
	if c := count(); c.Verdict() != verify.Match {
		t.Errorf("one row a group: %+v", c)
	}
	add(2, 11)
	if c := count(); c.Verdict() != verify.Mismatch || c.Keys != 3 {
		t.Errorf("two rows of one group: %+v", c)
	}
}
