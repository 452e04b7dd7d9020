package scatter

import (
	"context"
	"fmt"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// sampleReads bounds the source rows that each server reads for a sample of keys.
const sampleReads = 20_000_000

// SampleGroups gives about most of a unit's groups, twice as many at most: the
// dimensions of those that a hash over all dimensions chooses, each as likely as
// any other, in the part of the rows that is read. A job with a query of its own
// has none.
func (p *Planner) SampleGroups(ctx context.Context, up *UnitPlan, most uint64) (*row.Batch, error) {
	sample := &row.Batch{}
	if p.Job.SQL != "" || up.Groups == 0 {
		return sample, nil
	}
	b, err := up.Builder(p.Job)
	if err != nil {
		return nil, err
	}
	oneIn := max(1, up.Groups/most)
	q := clickhouse.Query{SQL: b.groups(up.CheckCondition(0, int(oneIn))) + fmt.Sprintf(" LIMIT %d", 2*most), ReadAtMost: sampleReads}
	err = inTurn(p.Nodes, p.Log, func(n *clickhouse.Node) error {
		q.ID = p.id("keys-" + up.Level)
		s, err := n.Stream(ctx, q)
		if err != nil {
			return err
		}
		defer s.Close()
		sample.Reset(len(s.Columns))
		for more := true; more && err == nil; {
			more, err = s.Next(sample, int(2*most)+1)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("a sample of the keys: %w", err)
	}
	return sample, nil
}
