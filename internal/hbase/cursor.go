package hbase

import (
	"context"
	"errors"

	"github.com/tsuna/gohbase/hrpc"
)

// A Cursor reads the rows of a range one after another and holds a page of them
// at most. It is used by one goroutine and needs no end.
type Cursor struct {
	client       *Client
	table        string
	next, stop   []byte
	since, until int64
	page         int
	rows         []Row
	done         bool
}

// Cursor begins to read the rows whose keys begin with prefix, in the order of
// the keys: of each column the newest cell with a timestamp in [since, until).
// page is the number of rows of one answer.
func (c *Client) Cursor(table string, prefix []byte, since, until int64, page int) *Cursor {
	return &Cursor{client: c, table: table, next: prefix, stop: afterPrefix(prefix), since: since, until: until, page: max(page, 1)}
}

var errPageFull = errors.New("the page is full")

// Fill reads a page ahead unless some of one is left.
func (u *Cursor) Fill(ctx context.Context) error {
	if len(u.rows) > 0 || u.done {
		return nil
	}
	s := rangeScan{table: u.table, next: u.next, stop: u.stop,
		// One more: a row is whole when the next one has begun.
		options: timeRange([]func(hrpc.Call) error{hrpc.NumberOfRows(uint32(u.page) + 1)}, u.since, u.until)}
	rows := u.rows[:0:0]
	err := u.client.scan(ctx, s, func(r hrpc.ResultV2) error {
		rows = append(rows, newRow(r))
		if len(rows) == u.page {
			return errPageFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return err
	}
	u.rows, u.done = rows, err == nil
	if !u.done {
		u.next = append(append([]byte(nil), rows[len(rows)-1].Key...), 0)
	}
	return nil
}

// Next gives the next row, which is the caller's; false at the end.
func (u *Cursor) Next(ctx context.Context) (Row, bool, error) {
	if err := u.Fill(ctx); err != nil || len(u.rows) == 0 {
		return Row{}, false, err
	}
	r := u.rows[0]
	u.rows = u.rows[1:]
	return r, true, nil
}

func newRow(r hrpc.ResultV2) Row {
	row := Row{}
	for _, cell := range r.Cells {
		row.Key = cell.Row()
		row.Cells = append(row.Cells, Cell{Family: string(cell.Family()), Qualifier: string(cell.Qualifier()), Timestamp: int64(cell.Timestamp()), Value: cell.Value()})
	}
	return row
}
