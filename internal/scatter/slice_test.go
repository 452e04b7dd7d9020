package scatter

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// holds says whether a slice takes a row with these hashes: what its condition says in SQL.
func (s Slice) holds(bucket int, deep uint64) bool {
	return s.has(bucket) && deep&(1<<s.Depth-1) == s.Part
}

// However often slices are cut, every row is in one of them, and in no other;
// and the same slice is always cut in the same way.
func TestHalvesAreCompleteAndDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := make([]uint64, Buckets)
		for range rapid.IntRange(0, 20).Draw(t, "heavy") {
			weights[rapid.IntRange(0, Buckets-1).Draw(t, "heavy bucket")] = rapid.Uint64Range(1, 9).Draw(t, "weight")
		}
		var slices []Slice
		for i, p := range pack(weights, rapid.IntRange(1, 6).Draw(t, "slices")) {
			slices = append(slices, Slice{Name: fmt.Sprint(i), BucketSet: p.set})
		}
		names := map[string]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "cuts") {
			i := rapid.IntRange(0, len(slices)-1).Draw(t, "slice")
			if slices[i].Depth >= deepest {
				continue
			}
			h := slices[i].halves()
			if !reflect.DeepEqual(h, slices[i].halves()) {
				t.Fatal("the same slice was cut in another way")
			}
			slices = append(append(slices[:i:i], h[0], h[1]), slices[i+1:]...)
		}
		for _, s := range slices {
			if names[s.Name] {
				t.Fatalf("two slices are named %s", s.Name)
			}
			names[s.Name] = true
		}
		for range 50 {
			bucket, deep := rapid.IntRange(0, Buckets-1).Draw(t, "bucket"), rapid.Uint64().Draw(t, "deep")
			in := 0
			for _, s := range slices {
				if s.holds(bucket, deep) {
					in++
				}
			}
			if in != 1 {
				t.Fatalf("bucket %d, hash %x is in %d slices", bucket, deep, in)
			}
		}
	})
}
