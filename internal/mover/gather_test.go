package mover

import (
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A result with other types than those that were planned is refused; how values
// are packed is no matter.
func TestTypesOfAResult(t *testing.T) {
	cases := []struct {
		planned, came string
		same          bool
	}{
		{"UInt64", "UInt64", true},
		{"LowCardinality(String)", "String", true},
		{"Nullable(String)", "LowCardinality(Nullable(String))", true},
		{"Decimal(18, 2)", "Decimal(18, 3)", false},
		{"DateTime64(3)", "DateTime64(6)", false},
		{"FixedString(4)", "FixedString(5)", false},
		{"UInt64", "UInt32", false},
		{"String", "Nullable(String)", false},
	}
	for _, tc := range cases {
		err := sameTypes("node", columnsOf(t, tc.planned), columnsOf(t, tc.came))
		if (err == nil) != tc.same || err != nil && failure.ClassOf(err) != failure.Source {
			t.Errorf("%s where %s was planned: %v", tc.came, tc.planned, err)
		}
	}
}

func columnsOf(t *testing.T, name string) []row.Column {
	t.Helper()
	typ, err := row.ParseType(name)
	if err != nil {
		t.Fatal(err)
	}
	return []row.Column{{Name: "c", Type: typ}}
}
