package mover

import (
	"slices"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// TestMeasure: a cluster is left alone only when what it has is what the run would
// make, and no cluster's readers may go back to an older job.
func TestMeasure(t *testing.T) {
	nothing := standing{}
	now := func(run string) standing { return standing{run, run, true} }
	other := func(run string) standing { return standing{run, run, false} }
	for _, c := range []struct {
		name   string
		all    []standing
		run    string
		behind []bool
	}{
		{"one cluster", []standing{now("1")}, "", nil},
		{"the first run", []standing{nothing, nothing}, "", nil},
		{"all have it", []standing{now("1"), now("1")}, "", nil},
		{"one has nothing", []standing{now("1"), nothing}, "1", []bool{false, true}},
		{"one has an older run", []standing{now("1"), now("2"), now("2")}, "2", []bool{true, false, false}},
		{"one has a part", []standing{{"", "2", true}, now("1")}, "1", []bool{true, false}},
		{"one was published half", []standing{{"1", "2", true}, now("2")}, "2", []bool{true, false}},
		{"another job in all", []standing{other("1"), other("1")}, "", nil},
		{"another job, older", []standing{other("1"), now("2")}, "2", []bool{true, false}},
		{"another job, newer", []standing{other("2"), now("1")}, "", nil},
		{"another job, newer, and a cluster with nothing", []standing{other("2"), now("1"), nothing}, "", nil},
		{"another job, newer in a part", []standing{{"1", "2", false}, now("1")}, "", nil},
		{"the same run, a part of another job", []standing{{"1", "1", false}, now("1")}, "1", []bool{true, false}},
	} {
		run, behind := measure(c.all)
		if run != c.run || !slices.Equal(behind, c.behind) {
			t.Errorf("%s: run %q, behind %v; want %q, %v", c.name, run, behind, c.run, c.behind)
		}
	}
}

// TestGenerations: pointers of levels that the job does not have count for nothing,
// and a repair stands for what it made up for.
func TestGenerations(t *testing.T) {
	units := []job.Unit{{Code: "1"}, {Code: "2"}}
	p := func(level, run, repairs string) ledger.Pointer {
		return ledger.Pointer{Level: level, Run: run, Repairs: repairs}
	}
	for _, c := range []struct {
		name           string
		pointers       []ledger.Pointer
		oldest, newest string
	}{
		{"nothing", nil, "", ""},
		{"both", []ledger.Pointer{p("1", "a", ""), p("2", "b", "")}, "a", "b"},
		{"one of two", []ledger.Pointer{p("2", "b", "")}, "", "b"},
		{"a repair", []ledger.Pointer{p("1", "c", "b"), p("2", "b", "")}, "b", "b"},
		{"another level", []ledger.Pointer{p("0", "0", ""), p("1", "b", ""), p("2", "b", ""), p("3", "d", "")}, "b", "b"},
	} {
		if oldest, newest := generations(ownPointers(units, c.pointers)); oldest != c.oldest || newest != c.newest {
			t.Errorf("%s: %q to %q, want %q to %q", c.name, oldest, newest, c.oldest, c.newest)
		}
	}
}
