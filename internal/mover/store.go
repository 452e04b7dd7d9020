package mover

import (
	"context"
	"fmt"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// The ledger's cells in HBase.
const (
	ledgerFamily    = "l"
	ledgerQualifier = "j"
)

// hbaseStore is the ledger's store in an HBase table.
type hbaseStore struct{ hb *hbase.Client }

var _ ledger.Store = (*hbaseStore)(nil)

func (s *hbaseStore) Get(ctx context.Context, key string) ([]byte, error) {
	r, err := s.hb.Get(ctx, ledger.Table, []byte(key), 0, 0)
	if err != nil {
		return nil, err
	}
	value, _ := r.Value(ledgerFamily, ledgerQualifier)
	return value, nil
}

func (s *hbaseStore) CompareAndPut(ctx context.Context, key string, expected, value []byte) (bool, error) {
	return s.hb.CheckAndPut(ctx, ledger.Table, []byte(key), ledgerFamily, ledgerQualifier, expected,
		map[string][]byte{ledgerQualifier: value})
}

func (s *hbaseStore) Scan(ctx context.Context, prefix string, fn func(key string, value []byte) error) error {
	return s.hb.ScanRows(ctx, ledger.Table, []byte(prefix), func(r hbase.Row) error {
		if value, ok := r.Value(ledgerFamily, ledgerQualifier); ok {
			return fn(string(r.Key), value)
		}
		return nil
	})
}

// ensureLedger makes the ledger's table if there is none.
func ensureLedger(ctx context.Context, hb *hbase.Client) error {
	table, err := hb.Table(ctx, ledger.Table)
	if err != nil {
		return err
	}
	if table == nil {
		spec := hbase.TableSpec{Name: ledger.Table, Family: ledgerFamily, Create: job.Create{Compression: "NONE", Versions: 1}}
		err = hb.CreateTable(ctx, spec)
	} else if _, ok := table.Families[ledgerFamily]; !ok {
		err = failure.Errorf(failure.Sink, "it has no family %q", ledgerFamily)
	}
	if err != nil {
		err = failure.New(failure.ClassOf(err), fmt.Errorf("the ledger table %s: %w", ledger.Table, err),
			"the user must be allowed to create this table, or somebody must create it with the family "+ledgerFamily)
	}
	return err
}
