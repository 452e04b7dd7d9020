package job

import "strings"

// nearest is the candidate that s was most likely meant to be, or "".
func nearest(s string, candidates []string) string {
	const whole = 4 // so long a beginning is no chance
	for _, c := range candidates {
		if len(s) >= whole && strings.HasPrefix(c, s) {
			return c
		}
	}
	best, bestCost := "", 1+max(1, len(s)/3)
	for _, c := range candidates {
		cost := distance(strings.ToLower(s), strings.ToLower(c))
		if cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	const limit = 64 // longer words are no typing slips
	if len(a) > limit || len(b) > limit {
		return limit
	}
	var before, prev, row [limit + 1]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := prev[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			cost = min(cost, prev[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
