package hbase

import (
	"bytes"
	"context"

	"github.com/tsuna/gohbase/hrpc"
)

// Put writes cells of one row, by qualifier, with a timestamp in milliseconds;
// 0 takes the server's clock.
func (c *Client) Put(ctx context.Context, table string, key []byte, family string, cells map[string][]byte, timestamp int64) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	put, err := newPut(limited, table, key, family, cells, timestamp)
	if err == nil {
		_, err = c.data.Put(put)
	}
	return c.classify(ctx, "write to "+table, err)
}

func newPut(ctx context.Context, table string, key []byte, family string, cells map[string][]byte, timestamp int64) (*hrpc.Mutate, error) {
	options := []func(hrpc.Call) error{hrpc.SkipBatch()}
	if timestamp > 0 {
		options = append(options, hrpc.TimestampUint64(uint64(timestamp)))
	}
	return hrpc.NewPut(ctx, []byte(table), key, map[string]map[string][]byte{family: cells}, options...)
}

// CheckAndPut writes cells of one row if the column family:qualifier holds
// expected, or does not exist where expected is nil, and tells whether it did.
// The new value of that column must be one that no other writer would put
// there: when the answer to a put is lost, the put is repeated and finds its
// own value, which then counts as written.
// After an error the row may or may not be written: read it.
func (c *Client) CheckAndPut(ctx context.Context, table string, key []byte, family, qualifier string, expected []byte, cells map[string][]byte) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	what := "check and write to " + table
	put, err := newPut(limited, table, key, family, cells, 0)
	if err != nil {
		return false, c.classify(ctx, what, err)
	}
	done, err := c.data.CheckAndPut(put, family, qualifier, expected)
	if err != nil || done {
		return done, c.classify(ctx, what, err)
	}
	own, sets := cells[qualifier]
	if !sets {
		return false, nil
	}
	row, err := c.Get(ctx, table, key, 0, 0)
	if err != nil {
		return false, err
	}
	found, exists := row.Value(family, qualifier)
	return exists && bytes.Equal(found, own), nil
}
