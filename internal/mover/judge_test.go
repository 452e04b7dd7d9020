package mover

import (
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// What was moved and what was counted must agree in every way that a count can tell.
func TestJudge(t *testing.T) {
	cases := map[string]struct {
		planned, moved, counted uint64 // source rows
		acked                   int64
		groups, keys            uint64
		checked, ok             bool
	}{
		"all equal":                          {900, 900, 900, 10, 10, 10, true, true},
		"nothing in the source":              {0, 0, 0, 0, 0, 0, true, true},
		"not checked":                        {900, 900, 900, 10, 10, 10, false, false},
		"a row missing in HBase":             {900, 900, 900, 10, 10, 9, true, false},
		"a row too many":                     {900, 900, 900, 10, 10, 11, true, false},
		"two rows on one key":                {900, 900, 900, 11, 10, 10, true, false},
		"a part of a node's rows is missing": {900, 600, 900, 10, 10, 10, true, false},
		"a part is missing, rows were added": {900, 600, 950, 10, 10, 10, true, false},
		"rows were added before the query":   {900, 950, 950, 10, 10, 10, true, true},
		"rows were added after the query":    {900, 900, 950, 10, 10, 10, true, true},
		"rows were deleted before the query": {900, 800, 800, 10, 10, 10, true, true},
		"rows were deleted after the query":  {900, 900, 800, 10, 10, 10, true, true},
		"fewer than either count, so a part": {900, 700, 800, 10, 10, 10, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := judgeUnit(&scatter.UnitPlan{Rows: tc.planned},
				sliceCount{sourceRows: tc.moved, ack: sink.Ack{Rows: tc.acked}},
				verify.Count{Groups: tc.groups, SourceRows: tc.counted, Keys: tc.keys, Checked: tc.checked}, false, "row keys in HBase")
			if (err == nil) != tc.ok {
				t.Errorf("judged %v", err)
			}
		})
	}
}

// Where no part of the source changed, the numbers of rows must be the same
// throughout, unless they are not known.
func TestJudgeOfASourceThatWasStill(t *testing.T) {
	for _, tc := range []struct {
		planned, moved, counted uint64
		uncounted, ok           bool
	}{
		{900, 900, 900, false, true}, {900, 900, 950, false, false}, {900, 950, 950, false, false},
		{900, 800, 800, false, false}, {900, 900, 800, false, false}, {900, 10, 0, true, true},
	} {
		err := judgeUnit(&scatter.UnitPlan{Rows: tc.planned, Uncounted: tc.uncounted}, sliceCount{sourceRows: tc.moved, ack: sink.Ack{Rows: 10}},
			verify.Count{Groups: 10, SourceRows: tc.counted, Keys: 10, Checked: true}, true, "row keys in HBase")
		if (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
