package mover

import (
	"context"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// RunMeddled is Run for a job with one cluster; meddle is called when all rows
// are acknowledged, before they are counted, with their timestamp.
func RunMeddled(ctx context.Context, m *Mover, meddle func(t int64) error) (*report.Result, error) {
	r := &run{Mover: m, started: time.Now()}
	r.id = newRunID(r.started)
	r.dest = &meddled{newHBaseTable(m, r.id, r.started, 0), meddle}
	return r.run(ctx)
}

type meddled struct {
	*hbaseTable
	meddle func(t int64) error
}

func (d *meddled) count(ctx context.Context, p *part, counts []verify.Count) error {
	t, _ := d.times(p.units[0])
	if err := d.meddle(t); err != nil {
		return err
	}
	return d.hbaseTable.count(ctx, p, counts)
}
