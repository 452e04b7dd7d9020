package hbase

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/tsuna/gohbase/hrpc"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// deletePatience is how long a batch of deletes is tried again.
const deletePatience = 2 * time.Minute

// DeleteVersion deletes, in the rows with the given keys, the cells of a family
// that have exactly one timestamp. Cells at other timestamps, older and newer
// ones, stay and stay visible. What is not there is no error, so it may be
// repeated. The keys must not change meanwhile.
func (c *Client) DeleteVersion(ctx context.Context, table, family string, keys [][]byte, timestamp int64) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(deletePatience))
	for {
		left, err := c.deleteOnce(ctx, table, family, keys, timestamp)
		if err == nil {
			return nil
		}
		wait := pause.NextBackOff()
		if ctx.Err() != nil || !failure.IsTransient(err) || wait == backoff.Stop {
			return err
		}
		c.log.Warn("deletes were not acknowledged and are sent again", "table", table, "rows", len(left), "error", err)
		keys = left
		sleep(ctx, wait)
	}
}

// deleteOnce returns the keys that are not acknowledged.
func (c *Client) deleteOnce(ctx context.Context, table, family string, keys [][]byte, timestamp int64) ([][]byte, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	calls := make([]hrpc.Call, len(keys))
	for i, key := range keys {
		del, err := hrpc.NewDel(limited, []byte(table), key, map[string]map[string][]byte{family: nil},
			hrpc.TimestampUint64(uint64(timestamp)), hrpc.DeleteOneVersion())
		if err != nil {
			return keys, c.classify(ctx, "delete from "+table, err)
		}
		calls[i] = del
	}
	results, ok := c.data.SendBatch(limited, calls)
	if ok {
		return nil, nil
	}
	var left [][]byte
	var worst error
	for i, r := range results {
		if r.Error == nil {
			continue
		}
		left = append(left, keys[i])
		if err := c.classify(ctx, "delete from "+table, r.Error); worst == nil || !failure.IsTransient(err) {
			worst = err
		}
	}
	return left, worst
}
