package scatter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// localCandidate lets each shard aggregate its own table.
func (p *Planner) localCandidate(ctx context.Context, up *UnitPlan, s *survey) (candidate, error) {
	l := &s.layout
	switch {
	case p.Job.SQL != "":
		return unusable(StrategyLocal, "the job has a query of its own"), nil
	case l.why != "":
		return unusable(StrategyLocal, "%s", l.why), nil
	case !p.placeable():
		return unusable(StrategyLocal, "an expression has a SELECT of its own, which would see the rows of one shard"), nil
	}
	if why := p.localDiffers(ctx, up, s); why != "" {
		return unusable(StrategyLocal, "%s", why), nil
	}
	placed := "one shard has all rows"
	if l.shards > 1 {
		columns, why := p.shardedBy(up, l)
		if why != "" {
			return unusable(StrategyLocal, "%s", why), nil
		}
		var err error
		if placed, why, err = p.placement(ctx, up, s, columns); err != nil || why != "" {
			return unusable(StrategyLocal, "%s", why), err
		}
	}
	d := p.sliceDemand(up, l.shards, "shards", up.Scan/uint64(l.shards), l.shards)
	cut, err := p.shardCut(ctx, up, s, (d.slices+l.shards-1)/l.shards)
	if err != nil {
		return candidate{}, err
	}
	return candidate{
		Choice: Choice{Strategy: StrategyLocal, Slices: len(cut.slices) * l.shards, Rows: cut.read, CPU: cpuSeconds(cut.read, up.Rows, 0), Reason: placed},
		why:    d.reason, by: cut.by, reason: cut.reason,
		cut: func(ctx context.Context, up *UnitPlan) error { return p.cutLocal(ctx, up, s, cut) },
	}, nil
}

// A shardCut is how each shard's own rows are cut.
type shardCut struct {
	by     key
	reason string  // why by that
	slices []Slice // but for the shard
	read   uint64  // by all of them, from all shards
	// number writes the query that counts the rows of a shard's slices.
	number func(*Builder) string
}

// shardCut cuts the rows of each shard in n: by ranges, where the primary key
// finds them, or else by buckets.
func (p *Planner) shardCut(ctx context.Context, up *UnitPlan, s *survey, n int) (shardCut, error) {
	by, reason, err := p.chooseKey(up, n)
	if err != nil {
		return shardCut{}, err
	}
	if n == 1 {
		reason = "slices are cut by it only where they hit a limit"
	}
	even := shardCut{by: by, reason: reason, read: up.Scan * uint64(n), number: func(b *Builder) string { return b.evenParts(by, n) }}
	for i := range n {
		even.slices = append(even.slices, Slice{BucketSet: evenBuckets(i, n)})
	}
	ranged, why := p.prunable(up, s, withoutRanges)
	if why != "" || n == 1 {
		return even, nil
	}
	bounds, err := p.bounds(ctx, up, s, ranged, n)
	if err != nil || len(bounds) == 0 || len(bounds) > countedBounds {
		return even, err
	}
	ranges := shardCut{by: key{ranged}, reason: foundByKey, slices: rangesOf(bounds), number: func(b *Builder) string { return b.between(ranged, bounds) }}
	if ranges.read, _, err = p.readBy(ctx, up, s, ranges.by, ranges.slices); err != nil || ranges.read > even.read {
		return even, err
	}
	return ranges, nil
}

// placeable says that no expression of the job reads a table by itself.
func (p *Planner) placeable() bool {
	texts := []string{p.Job.Source.Where}
	for _, d := range p.Job.Dimensions {
		texts = append(texts, d.Expr)
	}
	for _, m := range p.Job.Metrics {
		texts = append(texts, m.Expr)
	}
	return !slices.ContainsFunc(texts, func(s string) bool {
		lower := strings.ToLower(s)
		return strings.Contains(lower, "select") || strings.Contains(lower, "global")
	})
}

// localDiffers asks each shard whether its own table gives the same columns as
// the source table. It does so once for each level.
func (p *Planner) localDiffers(ctx context.Context, up *UnitPlan, s *survey) (why string) {
	if known, ok := s.differs[up.Unit.Level]; ok {
		return known
	}
	defer func() { s.differs[up.Unit.Level] = why }()
	if p.Job.Source.Table == s.layout.local {
		return ""
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return err.Error()
	}
	local := b.reading(s.layout.local)
	aliases, err := p.aliases(ctx, p.Nodes[0], p.Job.Source.Table)
	if err != nil {
		return err.Error()
	}
	err = p.eachShard(ctx, func(ctx context.Context, _ int, n *clickhouse.Node, _ bool) error {
		return p.sameColumns(ctx, n, local, s.layout.local, up.Columns, aliases)
	})
	if err != nil {
		return fmt.Sprintf("%s cannot stand for %s: %v", s.layout.local, p.Job.Source.Table, err)
	}
	return ""
}

// sameColumns tells whether a node's local table gives the columns of a level,
// and computes those that are computed as the source table does: an ALIAS of a
// Distributed table hides the column of that name behind it.
func (p *Planner) sameColumns(ctx context.Context, n *clickhouse.Node, local *Builder, name string, want []row.Column, aliases map[string]string) error {
	columns, err := p.header(ctx, n, local)
	if err != nil {
		return err
	}
	for i, c := range columns {
		if c.Type.Name != want[i].Type.Name {
			return fmt.Errorf("at %s %s is %s, not %s", n.Addr, want[i].Name, c.Type.Name, want[i].Type.Name)
		}
	}
	if len(aliases) == 0 {
		return nil
	}
	own, err := p.aliases(ctx, n, name)
	if err != nil {
		return err
	}
	for _, c := range slices.Sorted(maps.Keys(aliases)) {
		if own[c] != aliases[c] {
			return fmt.Errorf("the column %s is an ALIAS, which is another at %s", c, n.Addr)
		}
	}
	return nil
}

// aliases gives the expressions of a table's ALIAS columns.
func (p *Planner) aliases(ctx context.Context, n *clickhouse.Node, name string) (map[string]string, error) {
	all := map[string]string{}
	sql := "SELECT name, default_expression FROM system.columns WHERE default_kind = 'ALIAS' AND " + clickhouse.InTable(name, "table")
	err := n.Rows(ctx, clickhouse.Query{ID: p.id("aliases"), SQL: sql}, func(scan func(...any) error) error {
		var column, expr string
		err := scan(&column, &expr)
		all[column] = expr
		return err
	})
	return all, err
}

// cutLocal makes slices of each shard's own table.
func (p *Planner) cutLocal(ctx context.Context, up *UnitPlan, s *survey, cut shardCut) error {
	up.Local = s.layout.local
	b, err := up.Builder(p.Job)
	if err != nil {
		return err
	}
	shards, each := p.shards(), len(cut.slices)
	up.Slices = make([]Slice, len(shards)*each)
	for i := range up.Slices {
		up.Slices[i] = cut.slices[i%each]
		up.Slices[i].Name, up.Slices[i].Shard = strconv.Itoa(i), shards[i/each][0].Shard
	}
	sql := cut.number(b.on(shards[0][0].Shard, up))
	err = p.eachShard(ctx, func(ctx context.Context, shard int, n *clickhouse.Node, gentle bool) error {
		own := up.Slices[shard*each : (shard+1)*each]
		for i := range own {
			own[i].Rows = 0
		}
		q := clickhouse.Query{ID: p.id("shard-" + up.Level + "-" + up.Period), SQL: sql, Gentle: gentle}
		return tally(ctx, n, q, "part", each, func(i int) *uint64 { return &own[i].Rows })
	})
	if err != nil {
		return fmt.Errorf("counting the rows of the shards: %w", err)
	}
	up.Rows = sumRows(up.Slices)
	return nil
}

// shardedBy gives the dimensions that the sharding key is a function of.
func (p *Planner) shardedBy(up *UnitPlan, l *layout) (key, string) {
	if l.shardingKey == "" {
		return nil, p.Job.Source.Table + " has no sharding key"
	}
	group := up.group()
	for i, k := range group {
		if normal(p.Job.Dimensions[p.Job.Levels[up.Unit.Level].Dimensions[i]].Expr) == normal(l.shardingKey) {
			return key{k}, ""
		}
	}
	columns, ok := clickhouse.ColumnsOf(l.shardingKey)
	if !ok {
		return nil, fmt.Sprintf("the sharding key %s is not a function of columns", l.shardingKey)
	}
	var by key
	for _, c := range columns {
		i := slices.IndexFunc(p.Job.Levels[up.Unit.Level].Dimensions, func(d int) bool { return clickhouse.UnquoteName(p.Job.Dimensions[d].Expr) == c })
		if i < 0 {
			return nil, fmt.Sprintf("the sharding key %s reads %s, which the level does not group by", l.shardingKey, c)
		}
		by = append(by, group[i])
	}
	return by, ""
}

func normal(expr string) string { return strings.Join(strings.Fields(expr), "") }

// placementSample is about the number of values that are looked for on all shards.
const placementSample = 20_000

// placement looks whether values lie on one shard each, as the sharding key
// promises; rows may have been written to the local tables by somebody else.
func (p *Planner) placement(ctx context.Context, up *UnitPlan, s *survey, by key) (placed, why string, err error) {
	if p.TrustPlacement {
		return fmt.Sprintf("the sharding key %s is trusted", s.layout.shardingKey), "", nil
	}
	id := by.names()
	if known, ok := s.placed[id]; ok {
		return known.placed, known.why, nil
	}
	values := uint64(1)
	for _, k := range by {
		values = min(values*max(1, up.Cardinality[k.name]), max(1, up.Groups))
	}
	shards, err := p.sampleShards(ctx, s, by, max(1, values/placementSample))
	if err != nil {
		// Whoever may not read the local tables can still cut by hash.
		if clickhouse.KindOf(err) == clickhouse.KindCancelled {
			return "", "", err
		}
		return "", fmt.Sprintf("the placement could not be checked: %v", err), nil
	}
	placed, why = p.judgePlacement(by, shards)
	s.placed[id] = placementOf{placed, why}
	return placed, why, nil
}

// sampleShards gives the hashes of about [placementSample] values of a key that lie
// on each shard. oneIn is a first guess at how many there are for each of these:
// dimensions that go together have far fewer values than there could be.
func (p *Planner) sampleShards(ctx context.Context, s *survey, by key, oneIn uint64) ([][]uint64, error) {
	b, err := s.longest(p)
	if err != nil {
		return nil, err
	}
	b = b.reading(s.layout.local)
	const most = 4 * placementSample
	for {
		shards := make([][]uint64, s.layout.shards)
		err = p.eachShard(ctx, func(ctx context.Context, shard int, n *clickhouse.Node, gentle bool) error {
			shards[shard] = nil
			q := clickhouse.Query{ID: p.id("placement"), SQL: b.sampleHashes(by, oneIn, most), Gentle: gentle}
			return n.Rows(ctx, q, func(scan func(...any) error) error {
				var h uint64
				err := scan(&h)
				shards[shard] = append(shards[shard], h)
				return err
			})
		})
		found, cut := 0, false
		for _, hashes := range shards {
			found += len(hashes)
			cut = cut || len(hashes) == most
		}
		switch {
		case err == nil && cut:
			oneIn *= 64 // any of them, and others on each shard
		case err == nil && found < placementSample/20 && oneIn > 1:
			oneIn = max(1, oneIn/1024)
		default:
			return shards, err
		}
	}
}

func (p *Planner) judgePlacement(by key, shards [][]uint64) (placed, why string) {
	seen := map[uint64]int{}
	for shard, hashes := range shards {
		for _, h := range hashes {
			if other, twice := seen[h]; twice && other != shard {
				return "", fmt.Sprintf("a value of %s lies on shards %d and %d: rows were not placed by the sharding key",
					by.names(), p.shards()[other][0].Shard, p.shards()[shard][0].Shard)
			}
			seen[h] = shard
		}
	}
	return fmt.Sprintf("placed by %s: none of %d sampled values lies on two shards", by.names(), len(seen)), ""
}

// eachShard asks a node of every shard at once; those of other replicas follow
// where one fails, and a gentle question where the answer is over a limit.
func (p *Planner) eachShard(ctx context.Context, question func(ctx context.Context, shard int, n *clickhouse.Node, gentle bool) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for i, nodes := range p.shards() {
		g.Go(func() error {
			return inTurn(nodes, p.Log, gently(func(n *clickhouse.Node, gentle bool) error { return question(ctx, i, n, gentle) }))
		})
	}
	return g.Wait()
}

// shardsAtOnce bounds the questions under way.
const shardsAtOnce = 32
