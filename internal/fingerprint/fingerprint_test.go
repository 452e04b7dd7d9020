package fingerprint

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func at(shard, replica uint32, partitions map[string]State) Node {
	return Node{Shard: shard, Replica: replica, Addr: "ck:9000", Partitions: partitions}
}

func TestCompare(t *testing.T) {
	type parts = map[string]State
	a := State{Rows: 10, Block: 3}
	for name, tc := range map[string]struct {
		before, after []Node
		want          []Change
		incomplete    bool
	}{
		"nothing": {before: []Node{at(1, 1, parts{"p": a})}, after: []Node{at(1, 1, parts{"p": a})}},
		"rows, a new one, one gone, a mutation": {
			before: []Node{at(1, 1, parts{"p": a, "q": a, "m": a}), at(2, 1, parts{"p": a})},
			after:  []Node{at(1, 1, parts{"p": {Rows: 11, Block: 4}, "n": a, "m": {Rows: 10, Block: 3, Mutation: 4}}), at(2, 1, parts{"p": a})},
			want: []Change{
				{1, 1, "ck:9000", "m", a, State{Rows: 10, Block: 3, Mutation: 4}},
				{1, 1, "ck:9000", "n", State{}, a},
				{1, 1, "ck:9000", "p", a, State{Rows: 11, Block: 4}},
				{1, 1, "ck:9000", "q", a, State{}},
			},
		},
		"as many rows, others": {before: []Node{at(1, 1, parts{"p": a})}, after: []Node{at(1, 1, parts{"p": {Rows: 10, Block: 5}})},
			want: []Change{{1, 1, "ck:9000", "p", a, State{Rows: 10, Block: 5}}}},
		"a replica less":  {before: []Node{at(1, 1, parts{"p": a}), at(1, 2, parts{"p": a})}, after: []Node{at(1, 2, parts{"p": a})}},
		"another replica": {before: []Node{at(1, 1, parts{"p": a})}, after: []Node{at(1, 2, parts{"p": a})}, incomplete: true},
		"a shard less":    {before: []Node{at(1, 1, parts{"p": a}), at(2, 1, nil)}, after: []Node{at(1, 1, parts{"p": a})}, incomplete: true},
		"a shard more":    {before: []Node{at(1, 1, parts{"p": a})}, after: []Node{at(1, 1, parts{"p": a}), at(2, 1, nil)}, incomplete: true},
		"nobody":          {incomplete: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete := Fingerprint{"db.t", tc.before}.Compare(Fingerprint{"db.t", tc.after})
			if diff := cmp.Diff(tc.want, got); diff != "" || complete == tc.incomplete {
				t.Errorf("complete %v, (-want +got):\n%s", complete, diff)
			}
		})
	}
	if _, complete := (Fingerprint{"db.t", []Node{at(1, 1, nil)}}).Compare(Fingerprint{"db.u", []Node{at(1, 1, nil)}}); complete {
		t.Error("two tables were compared")
	}
}

// A fingerprint can be stored, and its hash depends on the state alone.
func TestHash(t *testing.T) {
	f := Fingerprint{"db.t", []Node{at(1, 1, map[string]State{"p": {Rows: 10, Block: 3}, "q": {Rows: 1, Block: 4, Mutation: 5}})}}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var g Fingerprint
	if err := json.Unmarshal(text, &g); err != nil || g.Hash() != f.Hash() || !cmp.Equal(f, g) {
		t.Errorf("%v: %s", err, text)
	}
	g.Nodes[0].Addr = "elsewhere:9000"
	if g.Hash() != f.Hash() || f.Nodes[0].Addr != "ck:9000" {
		t.Error("the address is in the hash")
	}
	g.Nodes[0].Partitions["p"] = State{Rows: 10, Block: 4}
	if g.Hash() == f.Hash() {
		t.Error("the state is not in the hash")
	}
}
