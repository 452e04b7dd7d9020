package hbase

import (
	"context"

	"github.com/tsuna/gohbase/hrpc"
)

// Cell is one cell of a row.
type Cell struct {
	Family, Qualifier string
	Timestamp         int64
	Value             []byte
}

// Row is a row that was read.
type Row struct {
	Key []byte
	// Cells is empty for a row that does not exist.
	Cells []Cell
}

// Value is the first cell of a column.
func (r Row) Value(family, qualifier string) ([]byte, bool) {
	for i := range r.Cells {
		if r.Cells[i].Family == family && r.Cells[i].Qualifier == qualifier {
			return r.Cells[i].Value, true
		}
	}
	return nil, false
}

// timeRange is the option for timestamps in [since, until); until 0 means any.
func timeRange(options []func(hrpc.Call) error, since, until int64) []func(hrpc.Call) error {
	if until > 0 {
		options = append(options, hrpc.TimeRangeUint64(uint64(since), uint64(until)))
	}
	return options
}

// Get reads one row: of each column the newest cell with a timestamp in
// [since, until) in milliseconds; until 0 means any. A row that does not exist
// has no cells.
func (c *Client) Get(ctx context.Context, table string, key []byte, since, until int64) (Row, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	get, err := hrpc.NewGet(limited, []byte(table), key, timeRange([]func(hrpc.Call) error{hrpc.SkipBatch()}, since, until)...)
	if err != nil {
		return Row{}, c.classify(ctx, "read from "+table, err)
	}
	result, err := c.data.Get(get)
	if err != nil {
		return Row{}, c.classify(ctx, "read from "+table, err)
	}
	row := Row{Key: key}
	for _, cell := range result.Cells {
		row.Cells = append(row.Cells, Cell{Family: string(cell.Family), Qualifier: string(cell.Qualifier), Timestamp: int64(*cell.Timestamp), Value: cell.Value})
	}
	return row, nil
}

// ScanRows calls fn for each row whose key begins with prefix, in the order of
// the keys, with the newest cell of each column. It is meant for small results;
// fn may keep the row. An error of fn ends the scan and is returned.
func (c *Client) ScanRows(ctx context.Context, table string, prefix []byte, fn func(Row) error) error {
	return c.scan(ctx, rangeScan{table: table, next: prefix, stop: afterPrefix(prefix)}, func(r hrpc.ResultV2) error {
		return fn(newRow(r))
	})
}

// afterPrefix is the first key behind all keys with the prefix, nil if there is none.
func afterPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			after := append([]byte(nil), prefix[:i+1]...)
			after[i]++
			return after
		}
	}
	return nil
}
