package scatter

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Buckets is the number of hash buckets that the values of the slicing
// dimension are counted in: enough for slices of equal weight, and so few that
// 10⁹ values cost the mover no more memory than 10⁶.
const Buckets = 65536

// A BucketSet is a set of hash buckets in a form that makes a short and fast
// condition: a range, less some of its buckets, and some others. The text that
// an initiator sends to the shards is longer than what it got, and a list of
// all buckets would break there.
type BucketSet struct {
	// Lo and Hi are the first and the last bucket of the range; it is empty where Hi < Lo.
	Lo int `json:"first_bucket"`
	Hi int `json:"last_bucket"`
	// Except are buckets of the range that other slices have.
	Except []int `json:"without_buckets,omitempty"`
	// Also are buckets outside of the range.
	Also []int `json:"and_buckets,omitempty"`
}

// allBuckets is the set that needs no condition.
func allBuckets() BucketSet { return BucketSet{Lo: 0, Hi: Buckets - 1} }

// evenBuckets is the i-th of n sets with equally many buckets.
func evenBuckets(i, n int) BucketSet {
	first := func(i int) int { return (i*Buckets + n - 1) / n }
	return BucketSet{Lo: first(i), Hi: first(i+1) - 1}
}

func (s BucketSet) all() bool { return s.Lo == 0 && s.Hi == Buckets-1 && len(s.Except) == 0 }

// size is the number of buckets.
func (s BucketSet) size() int { return max(0, s.Hi-s.Lo+1) - len(s.Except) + len(s.Also) }

// halves cuts a set of several buckets in two, always in the same way.
func (s BucketSet) halves() (a, b BucketSet) {
	none := BucketSet{Lo: 0, Hi: -1}
	switch ranged := s.size() - len(s.Also); {
	case ranged > 0 && len(s.Also) > 0:
		a, b = s, none
		a.Also, b.Also = nil, s.Also
	case ranged == 0:
		a, b = none, none
		middle := len(s.Also) / 2
		a.Also, b.Also = s.Also[:middle:middle], s.Also[middle:]
	default:
		middle := s.Lo + (s.Hi-s.Lo)/2
		i, _ := slices.BinarySearch(s.Except, middle+1)
		a = BucketSet{Lo: s.Lo, Hi: middle, Except: s.Except[:i:i]}
		b = BucketSet{Lo: middle + 1, Hi: s.Hi, Except: s.Except[i:]}
		if a.size() == 0 {
			return b.halves()
		}
		if b.size() == 0 {
			return a.halves()
		}
	}
	return a, b
}

// condition selects the rows whose bucket is in the set.
func (s BucketSet) condition(bucket string) string {
	if s.all() {
		return ""
	}
	var either []string
	if s.Lo <= s.Hi {
		c := fmt.Sprintf("%s BETWEEN %d AND %d", bucket, s.Lo, s.Hi)
		if len(s.Except) > 0 {
			c += " AND " + bucket + " NOT IN (" + numbers(s.Except) + ")"
		}
		either = append(either, c)
	}
	if len(s.Also) > 0 {
		either = append(either, bucket+" IN ("+numbers(s.Also)+")")
	}
	return strings.Join(either, " OR ")
}

func (s BucketSet) String() string {
	var text string
	if s.Lo <= s.Hi {
		text = fmt.Sprintf("%d-%d", s.Lo, s.Hi)
	}
	if len(s.Except) > 0 {
		text += " without " + numbers(s.Except)
	}
	switch {
	case len(s.Also) == 0:
		return text
	case text == "":
		return numbers(s.Also)
	default:
		return text + " and " + numbers(s.Also)
	}
}

func numbers(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// heavyShare is the part of a slice's share above which a bucket is dealt by
// itself: no slice is above its share by more than about that part, and it
// bounds the length of a condition, since a slice has few such buckets.
const heavyShare = 8

// A parcel is what pack makes of buckets: a set and its weight.
type parcel struct {
	set  BucketSet
	rows uint64
}

// pack deals all buckets to at most n parcels of nearly equal weight, heaviest
// first. Heavy buckets go by longest processing time first (Graham 1969), each
// to the parcel that is lightest so far; the others fill up what is left of
// each parcel's share, as contiguous ranges. weights[b] is the number of rows in bucket b.
func pack(weights []uint64, n int) []parcel {
	var total uint64
	for _, w := range weights {
		total += w
	}
	share := total / uint64(n)
	var heavy []int
	for b, w := range weights {
		if w > share/heavyShare && n > 1 && w > 0 {
			heavy = append(heavy, b)
		}
	}
	slices.SortStableFunc(heavy, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	hands := deal(weights, heavy, n)
	fill(weights, hands, heavy)
	hands = slices.DeleteFunc(hands, func(h *hand) bool { return h.set().size() == 0 })
	out := make([]parcel, len(hands))
	for i, h := range hands {
		out[i] = parcel{h.set(), h.load}
	}
	slices.SortStableFunc(out, func(a, b parcel) int { return cmp.Compare(b.rows, a.rows) })
	return out
}

// A hand is a parcel in the making.
type hand struct {
	index  int
	load   uint64
	heavy  []int // buckets that were dealt
	lo, hi int   // the range that fills it up
	except []int // heavy buckets of others in that range
}

func (h *hand) set() BucketSet {
	s := BucketSet{Lo: h.lo, Hi: h.hi, Except: h.except}
	for _, b := range h.heavy {
		if b < h.lo || b > h.hi {
			s.Also = append(s.Also, b)
		}
	}
	slices.Sort(s.Also)
	return s
}

// hands is a heap, the lightest on top.
type hands []*hand

func (h hands) Len() int { return len(h) }
func (h hands) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].load, h[j].load), cmp.Compare(h[i].index, h[j].index)) < 0
}
func (h hands) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *hands) Push(x any)   { *h = append(*h, x.(*hand)) }
func (h *hands) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

func deal(weights []uint64, heavy []int, n int) []*hand {
	queue := make(hands, n)
	for i := range queue {
		queue[i] = &hand{index: i, lo: 0, hi: -1}
	}
	for _, b := range heavy {
		lightest := queue[0]
		lightest.heavy = append(lightest.heavy, b)
		lightest.load += weights[b]
		heap.Fix(&queue, 0)
	}
	slices.SortFunc(queue, func(a, b *hand) int { return cmp.Compare(a.index, b.index) })
	return queue
}

// fill gives the light buckets to the hands as contiguous ranges, so that their
// loads come to one level as far as the heavy buckets allow.
func fill(weights []uint64, all []*hand, heavy []int) {
	isHeavy := make(map[int]bool, len(heavy))
	for _, b := range heavy {
		isHeavy[b] = true
	}
	var light uint64
	for b, w := range weights {
		if !isHeavy[b] {
			light += w
		}
	}
	level := waterLevel(all, light)
	// room are the hands that get a range, and upTo where it ends, in light rows.
	var room []*hand
	var upTo []uint64
	var sum uint64
	for _, h := range all {
		if h.load < level {
			sum += level - h.load
			room, upTo = append(room, h), append(upTo, sum)
		}
	}
	if len(room) == 0 {
		room, upTo = []*hand{slices.MinFunc(all, func(a, b *hand) int { return cmp.Compare(a.load, b.load) })}, []uint64{0}
	}
	i, seen := 0, uint64(0)
	room[0].lo = 0
	for b, w := range weights {
		if !isHeavy[b] {
			// A bucket belongs where its middle lies.
			for i < len(room)-1 && w > 0 && seen+w/2 >= upTo[i] {
				room[i].hi = b - 1
				i++
				room[i].lo = b
			}
			seen += w
			room[i].load += w
		} else if !slices.Contains(room[i].heavy, b) {
			room[i].except = append(room[i].except, b)
		}
	}
	room[i].hi = len(weights) - 1
	for _, rest := range room[i+1:] {
		rest.lo, rest.hi = 0, -1
	}
}

// waterLevel is the load that hands come to when amount is poured over them.
func waterLevel(all []*hand, amount uint64) uint64 {
	loads := make([]uint64, len(all))
	for i, h := range all {
		loads[i] = h.load
	}
	slices.Sort(loads)
	var sum uint64
	for i, load := range loads {
		sum += load
		n := uint64(i + 1)
		level := (sum + amount + n - 1) / n
		if i == len(loads)-1 || level <= loads[i+1] {
			return level
		}
	}
	return amount
}
