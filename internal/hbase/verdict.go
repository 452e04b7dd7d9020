package hbase

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/region"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A verdict says what to do with rows that a server did not put.
type verdict int

const (
	retry            verdict = iota // the same again after a pause
	stale                           // another server may have the region: look first
	pushback                        // the same again, more slowly
	permanentFailure                // no retry helps
)

// verdicts are the exceptions after which a put is sent again, by class name.
// An exception that is neither here nor in permanent ends the run: it is not
// known what a repetition would do.
var verdicts = map[string]verdict{
	"org.apache.hadoop.hbase.NotServingRegionException":                  stale,
	"org.apache.hadoop.hbase.exceptions.RegionMovedException":            stale,
	"org.apache.hadoop.hbase.exceptions.RegionOpeningException":          retry,
	"org.apache.hadoop.hbase.exceptions.RegionInRecoveryException":       retry,
	"org.apache.hadoop.hbase.regionserver.WrongRegionException":          stale,
	"org.apache.hadoop.hbase.UnknownRegionException":                     stale,
	"org.apache.hadoop.hbase.regionserver.RegionServerAbortedException":  stale,
	"org.apache.hadoop.hbase.regionserver.RegionServerStoppedException":  stale,
	"org.apache.hadoop.hbase.regionserver.RegionServerRunningException":  stale,
	"org.apache.hadoop.hbase.ipc.ServerNotRunningYetException":           retry,
	"org.apache.hadoop.hbase.PleaseHoldException":                        retry,
	"org.apache.hadoop.hbase.RetryImmediatelyException":                  retry,
	"org.apache.hadoop.hbase.ipc.CallerDisconnectedException":            retry,
	"org.apache.hadoop.hbase.exceptions.TimeoutIOException":              retry,
	"org.apache.hadoop.hbase.ipc.CallTimeoutException":                   retry,
	"org.apache.hadoop.hbase.regionserver.wal.WALClosedException":        retry,
	"org.apache.hadoop.hbase.regionserver.wal.DamagedWALException":       retry,
	"org.apache.hadoop.hbase.regionserver.wal.WALSyncTimeoutIOException": stale, // the server ends itself
	"org.apache.hadoop.hbase.DroppedSnapshotException":                   retry,
	"org.apache.hadoop.hbase.RegionTooBusyException":                     pushback,
	"org.apache.hadoop.hbase.CallQueueTooBigException":                   pushback,
	"org.apache.hadoop.hbase.CallDroppedException":                       pushback,
	"org.apache.hadoop.hbase.exceptions.RegionServerOverloadedException": pushback,
	"org.apache.hadoop.hbase.quotas.RpcThrottlingException":              pushback,
	"org.apache.hadoop.hbase.quotas.ThrottlingException":                 pushback,
	// What the log and the file system under it throw.
	"java.io.IOException":                      retry,
	"java.io.InterruptedIOException":           retry,
	"java.net.ConnectException":                retry,
	"java.net.SocketTimeoutException":          retry,
	"java.nio.channels.ClosedChannelException": stale,
	"java.util.concurrent.TimeoutException":    retry,
}

// judge decides on the error of a row, a region or a request.
func judge(err error) verdict {
	if errors.Is(err, gohbase.TableNotFound) {
		return permanentFailure
	}
	if class, _, ok := javaException(err); ok {
		if v, known := verdicts[class]; known {
			return v
		}
		return permanentFailure
	}
	// No server's word: the connection, its end, or an answer that cannot be
	// read. The server may be dead, and its regions elsewhere.
	return stale
}

// connectionEnded tells whether an error is the end of its connection.
func connectionEnded(err error) bool {
	_, ended := errors.AsType[region.ServerError](err)
	return ended
}

// classifyWrite turns a judged error of a put into a failure. The end of ctx,
// the caller's, is an interruption.
func (c *Client) classifyWrite(ctx context.Context, table string, err error, v verdict) error {
	what := "write to " + table
	class, _, java := javaException(err)
	if _, known := permanent[class]; !java || known || v != permanentFailure || ctx.Err() != nil {
		return c.classify(ctx, what, err)
	}
	return failure.New(failure.Sink, fmt.Errorf("HBase %s, %s: %w", c.Name(), what, &serverError{shortError(err.Error()), err}),
		"the mover does not know the exception "+class[strings.LastIndexByte(class, '.')+1:]+" and does not try again; see the region server's log")
}
