package clickhouse_test

import (
	"slices"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
)

func TestDistributedDefinitions(t *testing.T) {
	cases := map[string]clickhouse.Distributed{
		"Distributed(lab, demo, l)":                                                   {Cluster: "lab", Database: "demo", Table: "l"},
		"Distributed(lab, demo, l, rand())":                                           {Cluster: "lab", Database: "demo", Table: "l", ShardingKey: "rand()"},
		"Distributed('lab', 'demo', 'l', cityHash64(a, b) % 8, 'policy')":             {Cluster: "lab", Database: "demo", Table: "l", ShardingKey: "cityHash64(a, b) % 8"},
		"Distributed('lab', 'demo', 'l', a) SETTINGS fsync_after_insert = 1":          {Cluster: "lab", Database: "demo", Table: "l", ShardingKey: "a"},
		`Distributed('it\'s', 'a,b', 'c\\d', rand()) SETTINGS fsync_after_insert = 0`: {Cluster: "it's", Database: "a,b", Table: `c\d`, ShardingKey: "rand()"},
		"Distributed(`a b`, \"d\", t)":                                                {Cluster: "a b", Database: "d", Table: "t"},
		"Distributed(lab, demo, `a,b)`, f('x)', k))":                                  {Cluster: "lab", Database: "demo", Table: "a,b)", ShardingKey: "f('x)', k)"},
	}
	for full, want := range cases {
		got, ok, err := new(clickhouse.Node).Distributed(t.Context(), full)
		if err != nil || !ok || got != want {
			t.Errorf("%s: %+v, %v, %v", full, got, ok, err)
		}
	}
	for _, full := range []string{
		"", "Distributed", "Distributed(", "Distributed(lab)", "Distributed(lab, demo)", "Distributed(lab, currentDatabase(), t)", "Distributed(lab, '', l)",
		"Distributed('lab', 'demo', 't", "Distributed('lab' 'demo', 't')", "MergeTree ORDER BY k", "Distributed(,,)",
	} {
		if got, ok, err := new(clickhouse.Node).Distributed(t.Context(), full); ok || err != nil {
			t.Errorf("%s: %+v, %v", full, got, err)
		}
	}
}

func TestColumnsOfExpressions(t *testing.T) {
	cases := map[string][]string{
		"a":                                 {"a"},
		"cityHash64(a, `b c`) % 8":          {"a", "b c"},
		"xxHash32(concat('rand()', \"a\"))": {"a"},
		"a + a * 2":                         {"a"},
		"rand()":                            nil,
		"a + rand()":                        nil,
		"dictGet('d', 'x', a)":              nil,
		"7":                                 nil,
	}
	for expr, want := range cases {
		got, pure := clickhouse.ColumnsOf(expr)
		if pure != (want != nil) || pure && !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", expr, got, pure)
		}
	}
}
