package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/tsuna/gohbase/filter"
	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// closeTimeout bounds the closing of a scanner.
const closeTimeout = 2 * time.Second

// scanPatience is how long a scan goes on without getting a row or a region further.
const scanPatience = 2 * time.Minute

// ScanKeys calls fn for each row of a table that has a cell with a timestamp
// in [since, until), once, whatever moves or splits meanwhile. Regions are
// scanned by up to workers goroutines at once, and fn is called by all of them;
// the key is fn's during the call only. An error of fn ends the scan and is
// returned. The result is the number of rows seen.
func (c *Client) ScanKeys(ctx context.Context, table string, since, until int64, workers int, fn func(key []byte) error) (int64, error) {
	options := timeRange([]func(hrpc.Call) error{
		hrpc.Filters(filter.NewList(filter.MustPassAll, filter.NewFirstKeyOnlyFilter(), filter.NewKeyOnlyFilter(false))),
		hrpc.CacheBlocks(false),
	}, since, until)
	return c.scanRegions(ctx, table, workers, rangeScan{table: table, options: options, keysOnly: true}, func() func(hrpc.ResultV2) error {
		return func(r hrpc.ResultV2) error { return fn(r.Cells[0].Row()) }
	})
}

// A CellView is one cell of a row that a scan has read. It is valid during the
// call that it is given to.
type CellView struct{ Family, Qualifier, Value []byte }

// ScanCells is ScanKeys with all cells of a row that have a timestamp in
// [since, until), in all families; of a column with several the newest. The
// arguments of fn are its own during the call only.
func (c *Client) ScanCells(ctx context.Context, table string, since, until int64, workers int, fn func(key []byte, cells []CellView) error) (int64, error) {
	options := timeRange([]func(hrpc.Call) error{hrpc.CacheBlocks(false)}, since, until)
	return c.scanRegions(ctx, table, workers, rangeScan{table: table, options: options}, func() func(hrpc.ResultV2) error {
		var cells []CellView // of one region's scan
		return func(r hrpc.ResultV2) error {
			cells = cells[:0]
			for _, cell := range r.Cells {
				cells = append(cells, CellView{cell.Family(), cell.Qualifier(), cell.Value()})
			}
			return fn(r.Cells[0].Row(), cells)
		}
	})
}

// scanRegions scans the regions of a table side by side, and counts the rows.
// Each gets a function of its own.
func (c *Client) scanRegions(ctx context.Context, table string, workers int, all rangeScan, each func() func(hrpc.ResultV2) error) (int64, error) {
	regions, err := c.Regions(ctx, table)
	if err != nil {
		return 0, err
	}
	var rows atomic.Int64
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(max(workers, 1))
	for _, r := range regions {
		group.Go(func() error {
			// The bounds stay those of now: the scan finds its way over the regions that are there then.
			s, fn := all, each()
			s.next, s.stop = r.Start, r.End
			return c.scan(limited, s, func(r hrpc.ResultV2) error {
				rows.Add(1)
				return fn(r)
			})
		})
	}
	err = group.Wait()
	return rows.Load(), err
}

// noScanner marks that no scanner is open on the server.
const noScanner = math.MaxUint64

// rangeScan is a scan of the keys in [next, stop).
type rangeScan struct {
	table   string
	next    []byte
	stop    []byte // empty: to the end
	options []func(hrpc.Call) error
	// keysOnly says that one cell stands for a row.
	keysOnly bool

	scanner uint64
	last    []byte // the last key that was delivered, nil before the first
	done    bool
	// open is the row that came last: more of its cells may follow, since a
	// server ends an answer of enough bytes within a row.
	open hrpc.ResultV2
}

// scan calls fn for each row of a range in the order of keys, with all its cells.
func (c *Client) scan(ctx context.Context, s rangeScan, fn func(hrpc.ResultV2) error) error {
	s.scanner = noScanner
	what := "scan " + s.table
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(scanPatience))
	for !s.done {
		rows, err := c.fetch(ctx, &s)
		if err != nil {
			// The scanner may be lost and the position in it unknown: begin anew after the last row.
			s.resume()
			wait := pause.NextBackOff()
			err = c.classify(ctx, what, err)
			if ctx.Err() != nil || !failure.IsTransient(err) || wait == backoff.Stop {
				return err
			}
			c.log.Debug("scan begins anew", "table", s.table, "after", string(s.last), "err", err)
			sleep(ctx, wait)
			continue
		}
		for _, r := range rows {
			if err := s.take(r, fn); err != nil {
				c.closeScanner(ctx, &s)
				return err
			}
		}
		pause.Reset()
	}
	return s.deliver(fn)
}

// take adds what came to the open row, or delivers that one and opens another.
func (s *rangeScan) take(r hrpc.ResultV2, fn func(hrpc.ResultV2) error) error {
	switch {
	case len(r.Cells) == 0, s.last != nil && bytes.Equal(r.Cells[0].Row(), s.last):
		return nil
	case len(s.open.Cells) > 0 && bytes.Equal(r.Cells[0].Row(), s.open.Cells[0].Row()):
		s.open.Cells = append(s.open.Cells, r.Cells...)
		return nil
	}
	if err := s.deliver(fn); err != nil {
		return err
	}
	s.open = r
	if s.keysOnly {
		return s.deliver(fn)
	}
	return nil
}

// deliver gives the open row, which is whole now.
func (s *rangeScan) deliver(fn func(hrpc.ResultV2) error) error {
	if len(s.open.Cells) == 0 {
		return nil
	}
	r := s.open
	s.open = hrpc.ResultV2{}
	s.last = append(s.last[:0], r.Cells[0].Row()...)
	return fn(r)
}

// sleep waits, or returns when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// resume forgets the server's scanner; the next request opens one after the
// last row that was delivered. An open row is read again from its first cell.
func (s *rangeScan) resume() {
	s.scanner = noScanner
	if len(s.open.Cells) > 0 {
		s.next = append([]byte(nil), s.open.Cells[0].Row()...)
		s.open = hrpc.ResultV2{}
		return
	}
	if s.last != nil && bytes.Compare(s.last, s.next) >= 0 {
		s.next = append(append([]byte(nil), s.last...), 0)
	}
}

// fetch sends one request and moves the scan's position.
func (c *Client) fetch(ctx context.Context, s *rangeScan) ([]hrpc.ResultV2, error) {
	limited, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	options, stop := s.options, s.stop
	if s.scanner != noScanner {
		options, stop = []func(hrpc.Call) error{hrpc.ScannerID(s.scanner)}, nil
	}
	scan, err := hrpc.NewScanRange(limited, []byte(s.table), s.next, stop, options...)
	if err != nil {
		return nil, err
	}
	var call hrpc.Call = scan
	if s.scanner != noScanner {
		call = &onceCall{Scan: scan, cancel: cancel}
	}
	msg, err := c.rpc().SendRPC(call)
	if err != nil {
		return nil, err
	}
	response, ok := msg.(*pb.ScanResponse)
	if !ok || scan.Response == nil {
		return nil, errors.New("an answer to a scan that is none")
	}
	s.advance(response, scan.Region())
	return scan.Response.Results, nil
}

// closeScanner tells the server that no more is asked for; if it does not hear of
// it, it forgets the scanner after its lease.
func (c *Client) closeScanner(ctx context.Context, s *rangeScan) {
	if s.scanner == noScanner {
		return
	}
	limited, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	scan, err := hrpc.NewScanRange(limited, []byte(s.table), s.next, nil, hrpc.ScannerID(s.scanner), hrpc.CloseScanner())
	if err == nil {
		_, err = c.rpc().SendRPC(&onceCall{Scan: scan, cancel: cancel})
	}
	if err != nil {
		c.log.Debug("a scanner could not be closed", "table", s.table, "err", err)
	}
}

// advance moves on to the next part of the region, the next region, or the end.
func (s *rangeScan) advance(r *pb.ScanResponse, region hrpc.RegionInfo) {
	if r.GetMoreResultsInRegion() {
		if r.ScannerId != nil {
			s.scanner = r.GetScannerId()
		}
		return
	}
	s.scanner = noScanner
	end := region.StopKey()
	if r.MoreResults != nil && !*r.MoreResults || len(end) == 0 || len(s.stop) > 0 && bytes.Compare(end, s.stop) >= 0 {
		s.done = true
		return
	}
	s.next = append([]byte(nil), end...)
}

// onceCall is a request to an open scanner, which is sent once. gohbase would
// send it again when the connection broke before the answer; the scanner has
// moved on then, and the rows of the lost answer would be skipped. A second
// attempt finds the call's time over.
type onceCall struct {
	*hrpc.Scan
	cancel context.CancelFunc
	tries  int
}

// SetRegion is called before each attempt.
func (o *onceCall) SetRegion(region hrpc.RegionInfo) {
	if o.tries++; o.tries > 1 {
		o.cancel()
	}
	o.Scan.SetRegion(region)
}

// String names the call in gohbase's log.
func (o *onceCall) String() string { return fmt.Sprintf("next of %v", o.Scan) }
