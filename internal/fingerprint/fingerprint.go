// Package fingerprint tells whether a source changed between two moments. It
// asks each node for the parts of the MergeTree table that a Distributed table
// reads there, partition by partition.
//
// What is compared stays the same when parts are merged: the rows, the largest
// block number (every INSERT and ATTACH takes a new one), and the latest
// mutation. Where a merge drops rows, as those of ReplacingMergeTree or of a TTL,
// queries get something else after it, and it is a change; so, though they do not,
// is a merge that drops what DELETE FROM has marked. A mutation is a change of all
// partitions that it goes over, also of those in which it finds nothing. What cannot be seen
// here: a TTL that resets columns, and what a query reads besides the table, as
// dictionaries and other tables.
package fingerprint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A Fingerprint is the state of a source at one moment. It is a value: it can
// be stored as JSON and compared later.
type Fingerprint struct {
	// Table is the local table, as database.table.
	Table string `json:"table"`
	// Nodes are those that were asked, by shard and replica.
	Nodes []Node `json:"nodes"`
}

// A Node is what one node has.
type Node struct {
	Shard   uint32 `json:"shard"`
	Replica uint32 `json:"replica"`
	// Addr is where the node was reached; it is no part of the comparison.
	Addr string `json:"address"`
	// Partitions are the partitions with rows, by their partition_id.
	Partitions map[string]State `json:"partitions"`
}

// A State is that of a partition with rows.
type State struct {
	Rows uint64 `json:"rows"`
	// Block is the largest block number.
	Block int64 `json:"block"`
	// Mutation is the version of the latest mutation, 0 if there was none.
	Mutation int64 `json:"mutation,omitempty"`
}

// Hash is a SHA-256 in hex that is equal for equal states of the same table on
// the same shards and replicas.
func (f Fingerprint) Hash() string {
	canonical := Fingerprint{Table: f.Table, Nodes: slices.Clone(f.Nodes)}
	for i := range canonical.Nodes {
		canonical.Nodes[i].Addr = ""
	}
	text, err := json.Marshal(canonical) // maps are sorted by key
	if err != nil {
		text = []byte(err.Error()) // plain texts and numbers: it cannot fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A Change is a partition of a node that is not what it was.
type Change struct {
	Shard     uint32 `json:"shard"`
	Replica   uint32 `json:"replica"`
	Addr      string `json:"address"`
	Partition string `json:"partition"`
	// Before and After are zero where there was no such partition.
	Before State `json:"before"`
	After  State `json:"after"`
}

// String names the partition and its node.
func (c Change) String() string {
	what := fmt.Sprintf("%d rows became %d", c.Before.Rows, c.After.Rows)
	switch {
	case c.Before.Rows == 0:
		what = fmt.Sprintf("new, %d rows", c.After.Rows)
	case c.After.Rows == 0:
		what = fmt.Sprintf("gone, it had %d rows", c.Before.Rows)
	case c.Before.Mutation != c.After.Mutation:
		what = "mutated"
	}
	return fmt.Sprintf("%s at %s (%s)", c.Partition, c.Addr, what)
}

// Compare lists what changed from f to after, by node and partition. Nodes that
// were asked once only are left out. complete says that of each shard a node was
// asked both times, so that an empty list means that nothing changed.
func (f Fingerprint) Compare(after Fingerprint) (changes []Change, complete bool) {
	type id struct{ shard, replica uint32 }
	then := map[id]Node{}
	shards := map[uint32]bool{} // whether asked both times
	for _, n := range f.Nodes {
		then[id{n.Shard, n.Replica}] = n
		shards[n.Shard] = false
	}
	for _, n := range after.Nodes {
		before, ok := then[id{n.Shard, n.Replica}]
		shards[n.Shard] = shards[n.Shard] || ok
		if ok {
			changes = append(changes, before.compare(n)...)
		}
	}
	complete = f.Table == after.Table && len(shards) > 0
	for _, both := range shards {
		complete = complete && both
	}
	return changes, complete
}

func (n Node) compare(after Node) []Change {
	var changes []Change
	all := maps.Clone(n.Partitions)
	maps.Copy(all, after.Partitions)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if was, is := n.Partitions[p], after.Partitions[p]; was != is {
			changes = append(changes, Change{n.Shard, n.Replica, after.Addr, p, was, is})
		}
	}
	return changes
}

func (f *Fingerprint) sort() {
	slices.SortFunc(f.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Replica, b.Replica))
	})
}
