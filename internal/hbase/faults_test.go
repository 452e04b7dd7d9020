package hbase

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// split asks the master to split the region that holds key there. gohbase has
// no type for the request: it is an empty message with the fields as unknown ones.
func split(t *testing.T, c *Client, table, key string) {
	t.Helper()
	regions, err := c.Regions(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	var r Region
	for _, r = range regions {
		if string(r.Start) < key && (len(r.End) == 0 || key < string(r.End)) {
			break
		}
	}
	fields := strings.Split(strings.TrimPrefix(r.Name, table+","+string(r.Start)+","), ".")
	id, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	info, err := proto.Marshal(&pb.RegionInfo{RegionId: &id, TableName: tableName(table), StartKey: r.Start, EndKey: r.End})
	if err != nil {
		t.Fatal(err)
	}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), info)
	raw = protowire.AppendBytes(protowire.AppendTag(raw, 2, protowire.BytesType), []byte(key))
	request := &pb.IsMasterRunningRequest{}
	request.ProtoReflect().SetUnknown(raw)
	end := time.Now().Add(time.Minute)
	for { // a daughter of the split before may not be open yet
		err = c.admin(t.Context(), "split", callTimeout, func(ctx context.Context, m master) error {
			return m.call(ctx, "SplitRegion", request, &pb.DisableTableResponse{})
		})
		if err == nil || time.Now().After(end) || !strings.Contains(err.Error(), "not OPEN") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	for ; ; time.Sleep(50 * time.Millisecond) {
		now, err := c.Regions(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		if len(now) > len(regions) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the region was not split")
		}
	}
}

// TestScanOverSplit: regions are split under the scan; each key is seen once.
func TestScanOverSplit(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c, "row-010000") // a daughter cannot be split again at once
	fill(t, c, name, 20000, base)
	seen := map[string]int{}
	err := c.scan(t.Context(), rangeScan{table: name, options: []func(hrpc.Call) error{hrpc.NumberOfRows(500)}}, func(r hrpc.ResultV2) error {
		seen[string(r.Cells[0].Row())]++
		switch len(seen) {
		case 5000:
			split(t, c, name, "row-007000") // where the scan is
		case 12000:
			split(t, c, name, "row-015000")
		}
		return nil
	})
	if err != nil || len(seen) != 20000 {
		t.Errorf("%d keys, %v", len(seen), err)
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", k, n)
		}
	}
	// A whole scan whose bounds are those of now, and whose cached regions are gone.
	if n, err := c.ScanKeys(t.Context(), name, 0, 0, 4, func([]byte) error { return nil }); n != 20000 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestValueTooLarge: the server refuses the region's rows for good.
func TestValueTooLarge(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c)
	p := NewPuts("f", []string{"q"}, base)
	for key, size := range map[string]int{"a": 1, "large": 11 << 20, "z": 1} { // the limit is 10 MB
		p.BeginRow([]byte(key))
		p.EndCell(0, append(p.Cell(0), make([]byte, size)...))
		p.EndRow()
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	err := c.NewSender(name, SendOptions{Timeout: time.Minute}).Send(t.Context(), p)
	if failure.ClassOf(err) != failure.Sink || !strings.Contains(failure.Remedy(err), "size") || p.Pending() == 0 {
		t.Errorf("%d pending, %v → %s", p.Pending(), err, failure.Remedy(err))
	}
}

// TestBatchesAndReadsShareConnections: single calls are sent by their callers'
// goroutines while batches are under way, over the same connection; if the two
// mixed on the wire the server would cut it.
func TestBatchesAndReadsShareConnections(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c, "row-000500")
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := c.Get(t.Context(), name, []byte("row-000001"), 0, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		fill(t, c, name, 10000, base)
	}
	close(done)
	wg.Wait()
	if complaint := c.complaints.text(); complaint != "" {
		t.Errorf("gohbase complained: %s", complaint)
	}
}

// TestExpiredPutsDoNotHang: a request whose time is over before it is sent gets
// no answer; Send returns and the rows stay pending.
func TestExpiredPutsDoNotHang(t *testing.T) {
	c := dialLab(t)
	name := newTable(t, c)
	p := NewPuts("f", []string{"q"}, base)
	p.BeginRow([]byte("k"))
	p.EndCell(0, append(p.Cell(0), 'v'))
	p.EndRow()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	hasty := c.NewSender(name, SendOptions{Timeout: time.Nanosecond})
	if err := hasty.Send(t.Context(), p); !failure.IsTransient(err) || p.Pending() != 1 || time.Since(start) > time.Second {
		t.Errorf("%d pending after %v, %v", p.Pending(), time.Since(start), err)
	}
	start = time.Now()
	bounded := c.NewSender(name, SendOptions{Timeout: time.Minute, Valve: until(start)})
	if err := bounded.Send(t.Context(), p); !failure.IsTransient(err) || p.Pending() != 1 || time.Since(start) > time.Second {
		t.Errorf("%d pending %v after the valve's end, %v", p.Pending(), time.Since(start), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	patient := c.NewSender(name, SendOptions{Timeout: time.Minute})
	if err := patient.Send(ended, p); !errors.Is(err, context.Canceled) || !failure.IsTransient(err) || p.Pending() != 1 {
		t.Errorf("%d pending, %v", p.Pending(), err)
	}
	if err := patient.Send(t.Context(), p); err != nil || p.Pending() != 0 {
		t.Errorf("%d pending, %v", p.Pending(), err)
	}
	if row, err := c.Get(t.Context(), name, []byte("k"), base, base+1); err != nil || len(row.Cells) != 1 {
		t.Errorf("%+v, %v", row, err)
	}
}

// until is a valve that lets requests out until a time.
type until time.Time

func (u until) Open(context.Context, string, int) (time.Time, error) { return time.Time(u), nil }
func (until) Done(string, Outcome)                                   {}

// TestShortErrors: what a person sees of a Java exception.
func TestShortErrors(t *testing.T) {
	long := fmt.Sprintf("region.RetryableError: %sorg.apache.hadoop.hbase.RegionTooBusyException:\norg.apache.hadoop.hbase.RegionTooBusyException: Above memstore limit\n\tat x", javaMark)
	if got := shortError(long); got != "RegionTooBusyException: Above memstore limit" {
		t.Error(got)
	}
}
