package mover

import (
	"reflect"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// TestToBlame: a cluster is to blame for a unit that is right in another one, and
// for no unit that is right nowhere or that nobody counted.
func TestToBlame(t *testing.T) {
	right := verify.Count{Groups: 7, Keys: 7, Checked: true}
	less := verify.Count{Groups: 7, Keys: 6, Checked: true}
	more := verify.Count{Groups: 7, Keys: 8, Checked: true}
	unknown := verify.Count{Groups: 7, Keys: 7}
	type counts = []verify.Count
	for _, c := range []struct {
		name string
		in   []counts
		want [][]int
	}{
		{"one cluster, right", []counts{{right}}, [][]int{nil}},
		{"one cluster, wrong", []counts{{less}}, [][]int{nil}},
		{"all right", []counts{{right, right}, {right, right}}, [][]int{nil, nil}},
		{"one wrong", []counts{{right, right}, {right, less}}, [][]int{nil, {1}}},
		{"too many rows", []counts{{more}, {right}}, [][]int{{0}, nil}},
		{"each wrong in another unit", []counts{{less, right}, {right, more}}, [][]int{{0}, {1}}},
		{"wrong everywhere", []counts{{less, right}, {less, right}}, [][]int{nil, nil}},
		{"wrong everywhere in different ways", []counts{{less, right}, {more, less}}, [][]int{nil, {1}}},
		{"not counted in one", []counts{{right}, {unknown}}, [][]int{nil, {0}}},
		{"counted nowhere", []counts{{unknown}, {unknown}}, [][]int{nil, nil}},
		{"two of three", []counts{{less}, {right}, {more}}, [][]int{{0}, nil, {0}}},
	} {
		if got := toBlame(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
