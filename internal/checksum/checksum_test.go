package checksum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

type cell struct{ key, family, qualifier, value string }

func sum(cells ...cell) Sum {
	var s Sum
	var h Hasher
	for _, c := range cells {
		h.Row([]byte(c.key))
		s.Add(h.Cell([]byte(c.family), []byte(c.qualifier), []byte(c.value)))
	}
	return s
}

// TestDifferencesShow: whatever can happen to the cells of two rows changes the sum.
func TestDifferencesShow(t *testing.T) {
	rows := []cell{{"a", "f", "p", "1"}, {"a", "f", "q", "2"}, {"b", "f", "p", "3"}, {"b", "f", "q", ""}}
	want := sum(rows...)
	if got := sum(rows[3], rows[1], rows[0], rows[2]); got != want {
		t.Errorf("in another order %v, want %v", got, want)
	}
	var parts Sum
	parts.Add(sum(rows[:1]...))
	parts.Add(sum(rows[1:]...))
	if parts != want {
		t.Errorf("in two parts %v, want %v", parts, want)
	}
	seen := map[Sum]string{want: "the rows"}
	for name, other := range map[string][]cell{
		"nothing":              nil,
		"a cell is missing":    rows[1:],
		"an empty cell is":     rows[:3],
		"a cell is twice":      append(rows[:4:4], rows[0]),
		"one more":             append(rows[:4:4], cell{"c", "f", "p", "1"}),
		"a bit":                {{"a", "f", "p", "0"}, rows[1], rows[2], rows[3]},
		"values swapped":       {{"a", "f", "p", "3"}, rows[1], {"b", "f", "p", "1"}, rows[3]},
		"values swapped in a":  {{"a", "f", "p", "2"}, {"a", "f", "q", "1"}, rows[2], rows[3]},
		"rows swapped":         {{"b", "f", "p", "1"}, {"b", "f", "q", "2"}, {"a", "f", "p", "3"}, {"a", "f", "q", ""}},
		"another family":       {{"a", "g", "p", "1"}, rows[1], rows[2], rows[3]},
		"another qualifier":    {{"a", "f", "r", "1"}, rows[1], rows[2], rows[3]},
		"bounds key, family":   {{"af", "", "p", "1"}, rows[1], rows[2], rows[3]},
		"bounds family":        {{"a", "fp", "", "1"}, rows[1], rows[2], rows[3]},
		"bounds column, value": {{"a", "f", "p1", ""}, rows[1], rows[2], rows[3]},
	} {
		got := sum(other...)
		if before, known := seen[got]; known {
			t.Errorf("%s has the sum of %s", name, before)
		}
		seen[got] = name
	}
}

// TestAddCarries: the sum is one number of 128 bits.
func TestAddCarries(t *testing.T) {
	s := Sum{High: 1, Low: math.MaxUint64}
	s.Add(Sum{High: math.MaxUint64, Low: 2})
	if s != (Sum{High: 1, Low: 1}) || s.String() != "00000000000000010000000000000001" {
		t.Errorf("%v", s)
	}
}

func BenchmarkCell(b *testing.B) {
	var h Hasher
	var s Sum
	key, family, qualifier, value := []byte("11|4711|app|DAY|2026-11-29"), []byte("f"), []byte("pv"), []byte("1234567")
	b.ReportAllocs()
	for b.Loop() {
		h.Row(key)
		s.Add(h.Cell(family, qualifier, value))
	}
	if s == (Sum{}) {
		b.Error(s)
	}
}

// TestManyRandomCells: no two of many sets of random cells have one sum.
func TestManyRandomCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[Sum]bool{}
	var s Sum
	for i := range 100_000 {
		s.Add(sum(cell{fmt.Sprint(i), "f", "q", fmt.Sprint(r.Uint64())}))
		if seen[s] {
			t.Fatalf("after %d cells the sum is one of before", i)
		}
		seen[s] = true
	}
}
