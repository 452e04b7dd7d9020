package scatter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCutBalances(t *testing.T) {
	type ranges [][3]uint64 // first bucket, last bucket, rows
	cases := map[string]struct {
		weights []uint64
		n       int
		want    ranges
	}{
		"equal":                {[]uint64{1, 1, 1, 1, 1, 1}, 3, ranges{{0, 1, 2}, {2, 3, 2}, {4, 5, 2}}},
		"one slice":            {[]uint64{5, 0, 7}, 1, ranges{{0, 2, 12}}},
		"empty ends":           {[]uint64{0, 0, 4, 0, 4, 0}, 2, ranges{{0, 3, 4}, {4, 5, 4}}},
		"heavy first":          {[]uint64{100, 1, 1, 1}, 2, ranges{{0, 0, 100}, {1, 3, 3}}},
		"heavy last":           {[]uint64{1, 1, 1, 100}, 2, ranges{{0, 2, 3}, {3, 3, 100}}},
		"heavy in the middle":  {[]uint64{1, 1, 100, 1, 1}, 3, ranges{{0, 1, 2}, {2, 2, 100}, {3, 4, 2}}},
		"fewer filled buckets": {[]uint64{0, 9, 0, 9, 0}, 2, ranges{{0, 2, 9}, {3, 4, 9}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got ranges
			for _, s := range cut(tc.weights, tc.n) {
				got = append(got, [3]uint64{uint64(s.Lo), uint64(s.Hi), s.Rows})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever the weights, the slices cover every bucket once, are at most n, none
// is empty, and no slice is heavier than its share by more than the heaviest bucket.
func TestCutIsCompleteAndDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(0, 50), 1, 200).Draw(t, "weights")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var total uint64
		for _, w := range weights {
			total += w
		}
		if total == 0 {
			return
		}
		parts := cut(weights, n)
		if len(parts) > n {
			t.Fatalf("%d slices, at most %d asked", len(parts), n)
		}
		next, heaviest := 0, slices.Max(weights)
		for _, s := range parts {
			if s.Lo != next || s.Hi < s.Lo {
				t.Fatalf("slice %+v does not begin at bucket %d", s, next)
			}
			var sum uint64
			for _, w := range weights[s.Lo : s.Hi+1] {
				sum += w
			}
			if sum != s.Rows || sum == 0 {
				t.Fatalf("slice %+v holds %d rows", s, sum)
			}
			if limit := total/uint64(n) + 2*heaviest; sum > limit {
				t.Fatalf("slice %+v holds %d rows, its share is %d and the heaviest bucket %d", s, sum, total/uint64(n), heaviest)
			}
			next = s.Hi + 1
		}
		if next != len(weights) {
			t.Fatalf("the slices end at bucket %d of %d", next, len(weights))
		}
	})
}
