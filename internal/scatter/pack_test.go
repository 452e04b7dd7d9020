package scatter

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// has says what the set's condition says in SQL.
func (s BucketSet) has(b int) bool {
	return s.Lo <= b && b <= s.Hi && !slices.Contains(s.Except, b) || slices.Contains(s.Also, b)
}

func weightsOf(rows map[int]uint64) []uint64 {
	weights := make([]uint64, Buckets)
	for b, w := range rows {
		weights[b] = w
	}
	return weights
}

func TestPackBalances(t *testing.T) {
	even := make([]uint64, Buckets)
	for b := range even {
		even[b] = 3
	}
	skewed := slices.Clone(even)
	skewed[7], skewed[9], skewed[60000] = 50_000, 40_000, 30_000
	cases := map[string]struct {
		weights []uint64
		n       int
		want    []uint64 // rows, heaviest first
	}{
		"one slice":   {even, 1, []uint64{3 * Buckets}},
		"even":        {even, 4, []uint64{3 * Buckets / 4, 3 * Buckets / 4, 3 * Buckets / 4, 3 * Buckets / 4}},
		"one value":   {weightsOf(map[int]uint64{5: 100}), 1, []uint64{100}},
		"two heavies": {weightsOf(map[int]uint64{5: 100, 6: 99}), 2, []uint64{100, 99}},
		// 100 alone; the others share what is left.
		"one too heavy": {weightsOf(map[int]uint64{1: 100, 2: 10, 3: 10, 4: 10, 5: 10}), 3, []uint64{100, 20, 20}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			for _, p := range pack(tc.weights, tc.n) {
				got = append(got, p.rows)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("rows %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("skewed", func(t *testing.T) {
		var total uint64
		for _, w := range skewed {
			total += w
		}
		for _, p := range pack(skewed, 5) {
			if off := float64(p.rows) / (float64(total) / 5); off < 0.99 || off > 1.01 {
				t.Errorf("a slice holds %.3f of its share: %+v", off, p)
			}
		}
	})
}

// Whatever the weights, the slices hold every bucket once, none is empty, there
// are at most as many as asked for, and none is heavier than its share by more
// than an eighth, unless it was below its share before the last heavy bucket that
// was dealt to it: three buckets of 28, 26 and 15 make slices of 28 and 41.
func TestPackIsCompleteDisjointAndBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := make([]uint64, Buckets)
		for range rapid.IntRange(0, 300).Draw(t, "filled") {
			weights[rapid.IntRange(0, Buckets-1).Draw(t, "bucket")] = rapid.Uint64Range(0, 1000).Draw(t, "weight")
		}
		if rapid.Bool().Draw(t, "ground") {
			for b := range weights {
				weights[b] += 2
			}
		}
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var total uint64
		for _, w := range weights {
			total += w
		}
		parcels := pack(weights, n)
		if len(parcels) > n {
			t.Fatalf("%d slices, at most %d asked", len(parcels), n)
		}
		owner := make([]int, Buckets)
		share := total / uint64(n)
		for i, p := range parcels {
			var sum uint64
			last := total // the lightest of its heavy buckets
			buckets := 0
			for b, w := range weights {
				if p.set.has(b) {
					owner[b]++
					sum += w
					if w > share/heavyShare {
						last = min(last, w)
					}
					buckets++
				}
			}
			if sum != p.rows || buckets != p.set.size() || buckets == 0 {
				t.Fatalf("slice %d is said to hold %d rows in %d buckets, holds %d in %d", i, p.rows, p.set.size(), sum, buckets)
			}
			if sum > share+share/heavyShare+uint64(n) && sum-last > share {
				t.Fatalf("slice %d of %d holds %d rows, its share is %d and the last of its heavy buckets %d", i, n, sum, share, last)
			}
		}
		for b, times := range owner {
			if times != 1 {
				t.Fatalf("bucket %d is in %d slices", b, times)
			}
		}
	})
}

// A condition stays short whatever the weights: an initiator sends it on to the shards.
func TestPackedConditionsAreShort(t *testing.T) {
	weights := make([]uint64, Buckets)
	for b := range weights {
		weights[b] = uint64(1_000_000_000 / (b*7919%Buckets + 1)) // Zipf
	}
	for _, n := range []int{3, 120, 1000} {
		for _, p := range pack(weights, n) {
			if c := p.set.condition("x"); len(c) > 8000 {
				t.Fatalf("a condition of one of %d slices has %d bytes", n, len(c))
			}
		}
	}
}
