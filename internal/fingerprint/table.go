package fingerprint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A Table is the MergeTree table that the source reads on every node.
type Table struct {
	database, name string
	nodes          []*clickhouse.Node
	log            *slog.Logger
	// monthly says that the table was made in the old way, by month: the names
	// of its parts begin with two dates instead of the partition_id.
	monthly atomic.Bool
}

// ErrNone is in the errors of [Find] for sources whose changes cannot be told.
var ErrNone = errors.New("it cannot be told whether the source changes")

func none(format string, args ...any) error {
	return failure.New(failure.Preflight, fmt.Errorf("%w: %s", ErrNone, fmt.Sprintf(format, args...)), "")
}

// Find finds the local table behind the source's table. A view, an engine
// without parts, or what the user may not see is an [ErrNone].
func Find(ctx context.Context, src job.Source, nodes []*clickhouse.Node, log *slog.Logger) (*Table, error) {
	database, name, ok := strings.Cut(src.Table, ".")
	if !ok {
		database, name = "", src.Table
	}
	t := &Table{database: database, name: name, nodes: nodes, log: log}
	def, err := t.definition(ctx, nodes[0])
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(def.full, "Distributed(") {
		d, ok, err := nodes[0].Distributed(ctx, def.full)
		switch {
		case failure.IsTransient(err):
			return nil, err
		case err != nil:
			return nil, none("%v", err)
		case !ok:
			return nil, none("%s does not name the database and the table behind %s", def.full, src.Table)
		case d.Cluster != src.Cluster:
			return nil, none("the rows of %s are in the cluster %s, and source.cluster is %s", src.Table, d.Cluster, src.Cluster)
		}
		t.database, t.name = d.Database, d.Table
	} else {
		t.database = def.database
	}
	for _, n := range nodes {
		def, err := t.definition(ctx, n)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(def.engine, "MergeTree") {
			return nil, none("%s has the engine %s on %s, which has no parts", t, def.engine, n.Addr)
		}
	}
	return t, nil
}

// String is the table's name.
func (t *Table) String() string { return t.database + "." + t.name }

type definition struct{ database, engine, full string }

func (t *Table) definition(ctx context.Context, n *clickhouse.Node) (definition, error) {
	database := "currentDatabase()"
	if t.database != "" {
		database = clickhouse.Quote(t.database)
	}
	var d definition
	found := false
	sql := "SELECT database, engine, engine_full FROM system.tables WHERE database = " + database + " AND name = " + clickhouse.Quote(t.name)
	err := again(ctx, func() error {
		return n.Rows(ctx, clickhouse.Query{SQL: sql}, func(scan func(...any) error) error {
			found = true
			return scan(&d.database, &d.engine, &d.full)
		})
	})
	switch {
	case failure.IsTransient(err):
		return d, err
	case err != nil: // no right to see it, or a limit
		return d, none("%v", err)
	case !found:
		return d, none("%s cannot be seen in system.tables of %s", strings.TrimPrefix(t.String(), "."), n.Addr)
	}
	return d, nil
}

// The attempts of asking a node, and the pause between them.
const (
	attempts = 3
	pause    = time.Second
)

// Take takes the present fingerprint of all nodes. A node that does not answer
// is left out if another one of its shard does.
func (t *Table) Take(ctx context.Context) (Fingerprint, error) {
	states := make([]map[string]State, len(t.nodes))
	errs := make([]error, len(t.nodes))
	var wg sync.WaitGroup
	for i, n := range t.nodes {
		wg.Go(func() {
			errs[i] = again(ctx, func() (err error) {
				states[i], err = t.states(ctx, n)
				return err
			})
		})
	}
	wg.Wait()
	f := Fingerprint{Table: t.String()}
	asked := map[uint32]bool{}
	for i, n := range t.nodes {
		if errs[i] == nil {
			asked[n.Shard] = true
			f.Nodes = append(f.Nodes, Node{n.Shard, n.Replica, n.Addr, states[i]})
		}
	}
	for i, n := range t.nodes {
		if errs[i] != nil && !asked[n.Shard] {
			return f, fmt.Errorf("reading the parts of %s: %w", t, errs[i])
		}
		if errs[i] != nil {
			t.log.Warn("a node's parts could not be read; those of another replica do", "node", n.Addr, "error", errs[i])
		}
	}
	f.sort()
	return f, nil
}

// again asks again while the errors may pass.
func again(ctx context.Context, ask func() error) error {
	for attempt := 1; ; attempt++ {
		err := ask()
		if err == nil || attempt == attempts || !failure.IsTransient(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (t *Table) states(ctx context.Context, n *clickhouse.Node) (map[string]State, error) {
	states := map[string]State{}
	// A part that was never mutated has the number of its first block as its
	// data_version, which a merge changes. Parts without rows are what is left of
	// dropped ones for a while.
	sql := "SELECT partition_id, sum(rows), max(toInt64(max_block_number)), max(if(data_version = min_block_number, toInt64(0), toInt64(data_version))), any(name)" +
		" FROM system.parts WHERE active AND rows > 0 AND database = " + clickhouse.Quote(t.database) + " AND table = " + clickhouse.Quote(t.name) +
		" GROUP BY partition_id"
	patched := map[string]int64{}
	err := n.Rows(ctx, clickhouse.Query{SQL: sql}, func(scan func(...any) error) error {
		var id, name string
		var s State
		if err := scan(&id, &s.Rows, &s.Block, &s.Mutation, &name); err != nil {
			return err
		}
		if !strings.HasPrefix(name, id+"_") {
			t.monthly.Store(true)
		}
		if of, ok := patchOf(id); ok {
			patched[of] = max(patched[of], s.Mutation)
			return nil
		}
		states[id] = s
		return nil
	})
	for id, version := range patched {
		if s, ok := states[id]; ok {
			s.Mutation = max(s.Mutation, version)
			states[id] = s
		}
	}
	return states, err
}

// patchOf gives the partition that a partition of patches, those of lightweight
// updates, is about: patch-<32 hex digits>-<partition_id>. Its version is that of
// the parts that they are merged into later.
func patchOf(id string) (string, bool) {
	const head, digits = "patch-", 32
	rest, ok := strings.CutPrefix(id, head)
	if !ok || len(rest) <= digits || rest[digits] != '-' {
		return "", false
	}
	return rest[digits+1:], true
}

// mostPartitions bounds the partitions that one query names.
const mostPartitions = 1000

// Touched keeps the changes of partitions in which a filter, empty for none,
// takes rows now. Rows that are gone cannot be asked for: whoever counts the
// filter's rows sees them missing. A node that cannot say is taken to say yes.
func (t *Table) Touched(ctx context.Context, where string, changes []Change) ([]Change, error) {
	var touched []Change
	for _, n := range t.nodes {
		var there []Change
		for _, c := range changes {
			if c.Shard == n.Shard && c.Replica == n.Replica && c.After.Rows > 0 {
				there = append(there, c)
			}
		}
		for some := range slices.Chunk(there, mostPartitions) {
			ids, err := t.holding(ctx, n, where, some)
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				t.log.Warn("could not ask whether the filter takes rows from partitions that changed; it is taken to do so", "node", n.Addr, "error", err)
			}
			for _, c := range some {
				if err != nil || ids[c.Partition] {
					touched = append(touched, c)
				}
			}
		}
	}
	return touched, nil
}

// holding gives the partitions, of those that changed, with rows of the filter.
func (t *Table) holding(ctx context.Context, n *clickhouse.Node, where string, changes []Change) (map[string]bool, error) {
	partition := "substring(_part, 1, position(_part, '_') - 1)"
	if t.monthly.Load() {
		partition = "substring(_part, 1, 6)"
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = clickhouse.Quote(c.Partition)
	}
	sql := "SELECT DISTINCT " + partition + " FROM " + identifier(t.database) + "." + identifier(t.name) +
		" WHERE " + partition + " IN (" + strings.Join(ids, ", ") + ")"
	if where != "" {
		sql += " AND (" + where + ")"
	}
	var found map[string]bool
	err := again(ctx, func() error {
		found = map[string]bool{}
		return n.Rows(ctx, clickhouse.Query{SQL: sql}, func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			found[id] = true
			return err
		})
	})
	return found, err
}

// identifier quotes a name.
func identifier(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
