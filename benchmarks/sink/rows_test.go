package main

import (
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// TestRows: the shape is a job that compiles, and its rows fit it.
func TestRows(t *testing.T) {
	s, err := newShape(4)
	if err != nil {
		t.Fatal(err)
	}
	b := row.Batch{Width: 6}
	s.appendRow(&b, 123456)
	key, err := s.keys.AppendKey(nil, s.unit, b.Row(0)[:2])
	if err != nil || string(key[2:]) != "|2703968361|feed|BY_LAST_DAYS_30|2026-11-29" {
		t.Errorf("%q, %v", key, err)
	}
	for i := range 4 {
		if _, present, err := s.cells.Append(nil, i, b.Row(0)[2:]); err != nil || !present {
			t.Error(i, present, err)
		}
	}
}
