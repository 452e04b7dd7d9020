package hbase

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func batch(t *testing.T, p *Puts, cells int, keys ...string) {
	t.Helper()
	for _, k := range keys {
		p.BeginRow([]byte(k))
		for i := range cells {
			p.EndCell(i, append(p.Cell(i), "value of "+k...))
		}
		if p.EndRow() != (cells > 0) {
			t.Errorf("EndRow of a row with %d cells", cells)
		}
	}
}

// TestPuts: rows are sorted, equal keys are an error that shows both rows.
func TestPuts(t *testing.T) {
	p := NewPuts("f", []string{"q", "r"}, 7)
	for range 2 { // the second time in used memory
		batch(t, p, 2, "c", "a", "b")
		batch(t, p, 0, "none")
		p.BeginRow([]byte("dropped"))
		p.EndCell(0, p.Cell(0))
		p.DropRow()
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		if p.Rows() != 3 || p.Cells() != 6 || p.Bytes() != 3*(1+2*(1+10)) || p.Pending() != 3 {
			t.Errorf("%d rows, %d cells, %d bytes, %d pending", p.Rows(), p.Cells(), p.Bytes(), p.Pending())
		}
		for i, r := range p.pending {
			if got := string(p.rowKey(r)); got != string("abc"[i]) {
				t.Errorf("row %d has the key %q", i, got)
			}
		}
		p.Reset()
	}
	batch(t, p, 1, "a", "b")
	batch(t, p, 2, "a")
	d, ok := errors.AsType[*DuplicateKeyError](p.Seal())
	if !ok || string(d.Key) != "a" {
		t.Fatal(d)
	}
	one, two := d.Values[0], d.Values[1]
	if len(one) != 2 || len(two) != 2 || string(one[0]) != "value of a" || string(two[0]) != "value of a" || (one[1] == nil) == (two[1] == nil) {
		t.Errorf("the rows are %q", d.Values)
	}
}

// TestMultiRequest compares the request, which is encoded by hand, with the one
// that HBase's own message types give.
func TestMultiRequest(t *testing.T) {
	for _, d := range []Durability{DurabilityTable, DurabilityNone, DurabilityAsync, DurabilitySync} {
		p := NewPuts("f", []string{"q", "r"}, 7)
		var keys []string
		for i := range 400 {
			keys = append(keys, fmt.Sprintf("k%03d", i))
		}
		batch(t, p, 2, keys...)
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		now := routes{[]Region{{End: []byte("k100"), Server: "a:1", Name: "first"}, {Start: []byte("k100"), End: []byte("k200"), Server: "b:1", Name: "second"},
			{Start: []byte("k200"), End: []byte("k300"), Name: "homeless"}, {Start: []byte("k300"), Server: "a:1", Name: "fourth"}}}
		for range 2 { // the second time in used memory
			parts, homeless := now.share(p)
			if len(parts) != 2 || homeless == nil || homeless.Name != "homeless" || parts[0].server != "a:1" || len(parts[0].spans) != 2 {
				t.Fatalf("%+v, %+v", parts, homeless)
			}
			r := &parts[0]
			r.encode(p, d)
			var got pb.MultiRequest
			if err := proto.Unmarshal(r.message, &got); err != nil {
				t.Fatal(err)
			}
			want, cells, index := &pb.MultiRequest{}, []byte{}, uint32(0)
			for _, s := range []struct {
				region   string
				from, to int
			}{{"first", 0, 100}, {"fourth", 300, 400}} {
				a := &pb.RegionAction{Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(s.region)}}
				for i := s.from; i < s.to; i++ {
					m := &pb.MutationProto{MutateType: pb.MutationProto_PUT.Enum(), AssociatedCellCount: new(int32(2))}
					if d != DurabilityTable {
						m.Durability = pb.MutationProto_Durability(d).Enum()
					}
					a.Action = append(a.Action, &pb.Action{Index: new(index), Mutation: m})
					index++
					cells = append(cells, p.built[p.rows[i].from:p.rows[i].to]...)
				}
				want.RegionAction = append(want.RegionAction, a)
			}
			if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			if sent := bytes.Join(r.buffers, nil); !bytes.Equal(sent, cells) || r.bytes != len(cells) || r.rows != 200 {
				t.Errorf("%d bytes of cells for %d, %d rows", len(sent), len(cells), r.rows)
			}
		}
	}
}

// TestPendingSize: it is that of the cells that are not acknowledged, whatever
// else the batch's memory was used for.
func TestPendingSize(t *testing.T) {
	// Lengths of 4, 4, 4, 2 and 1 bytes, the family, the qualifier, 8 of the
	// timestamp and 1 of the type; then the key and the value.
	const around = 15 + 1 + 1 + 9
	p := NewPuts("f", []string{"q"}, 7)
	for _, key := range []string{"bb", "a", "dropped", "cccc"} {
		p.BeginRow([]byte(key))
		p.EndCell(0, append(p.Cell(0), "123"...))
		if key == "dropped" {
			p.DropRow()
		} else {
			p.EndRow()
		}
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.PendingSize(), 3*(around+3)+1+2+4; got != want {
		t.Errorf("%d bytes of three rows, want %d", got, want)
	}
	p.acked = []bool{false, true, false} // bb
	p.settle()
	if got, want := p.PendingSize(), 2*(around+3)+1+4; got != want || p.Pending() != 2 {
		t.Errorf("%d bytes of two rows, want %d; %d rows", got, want, p.Pending())
	}
	p.acked = []bool{true, true}
	p.settle()
	if p.PendingSize() != 0 || p.Pending() != 0 {
		t.Errorf("%d bytes of %d rows", p.PendingSize(), p.Pending())
	}
}

// TestMultiAnswer: only what the server says it has put is acknowledged.
func TestMultiAnswer(t *testing.T) {
	oops := func(class string) *pb.NameBytesPair {
		return &pb.NameBytesPair{Name: &class, Value: []byte(class + ": because\n\tat x")}
	}
	put := func(i uint32) *pb.ResultOrException { return &pb.ResultOrException{Index: &i, Result: &pb.Result{}} }
	refused := func(i uint32) *pb.ResultOrException {
		return &pb.ResultOrException{Index: &i, Exception: oops("Refused")}
	}
	for name, tt := range map[string]struct {
		regions [][]*pb.ResultOrException
		whole   map[int]string // exceptions of regions
		acked   string
		failed  string
		broken  bool
	}{
		"all":              {regions: [][]*pb.ResultOrException{{put(1), put(0)}, {put(2), put(3)}}, acked: "++++", failed: "    "},
		"a row refused":    {regions: [][]*pb.ResultOrException{{put(0), refused(1)}, {put(3), put(2)}}, acked: "+ ++", failed: " R  "},
		"a region":         {regions: [][]*pb.ResultOrException{nil, {put(2), put(3)}}, whole: map[int]string{0: "Moved"}, acked: "  ++", failed: "MM  "},
		"a row missing":    {regions: [][]*pb.ResultOrException{{put(0)}, {put(2), put(3)}}, acked: "+ ++", failed: " ?  "},
		"a region less":    {regions: [][]*pb.ResultOrException{{put(0), put(1)}}, acked: "++  ", failed: "  ??"},
		"nothing said":     {regions: [][]*pb.ResultOrException{{{Index: new(uint32(0))}, put(1)}, {put(2), put(3)}}, acked: " +++", failed: "?   "},
		"another region's": {regions: [][]*pb.ResultOrException{{put(0), put(3)}, {put(2), put(3)}}, acked: "+   ", failed: " ???", broken: true},
		"twice":            {regions: [][]*pb.ResultOrException{{put(0), put(0)}, {put(2), put(3)}}, acked: "+   ", failed: " ???", broken: true},
		"a region more":    {regions: [][]*pb.ResultOrException{{put(0), put(1)}, {put(2), put(3)}, {put(4)}}, acked: "++++", failed: "    ", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := &pb.MultiResponse{Processed: new(true)}
			for i, results := range tt.regions {
				a := &pb.RegionActionResult{ResultOrException: results}
				if class := tt.whole[i]; class != "" {
					a.Exception = oops(class)
				}
				answer.RegionActionResult = append(answer.RegionActionResult, a)
			}
			message, err := proto.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			r := part{rows: 4, spans: []span{{"first", 5, 7}, {"second", 10, 12}}}
			acked, failed, index := []byte("    "), []byte("    "), r.indexes()
			err = r.decode(message, func(row int) {
				acked[row] = '+'
				if want := []int{5, 6, 10, 11}[row]; index(row) != want {
					t.Errorf("row %d is pending row %d, want %d", row, index(row), want)
				}
			}, func(from, to int, err error) {
				for i := from; i < to; i++ {
					failed[i] = '?'
					if class, message, ok := javaException(err); ok {
						failed[i] = class[0]
						if message != "because" {
							t.Errorf("%v: message %q", err, message)
						}
					}
				}
			})
			if string(acked) != tt.acked || string(failed) != tt.failed || (err != nil) != tt.broken {
				t.Errorf("acknowledged %q, failed %q, %v", acked, failed, err)
			}
		})
	}
}

// TestMultiAnswerCut: a message that ends early is no acknowledgement of the rest.
func TestMultiAnswerCut(t *testing.T) {
	r := part{rows: 1, spans: []span{{"r", 0, 1}}}
	message, err := proto.Marshal(&pb.MultiResponse{RegionActionResult: []*pb.RegionActionResult{{ResultOrException: []*pb.ResultOrException{{Index: new(uint32(0)), Result: &pb.Result{}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(message) {
		if err := r.decode(message[:n], func(int) { t.Errorf("%d of %d bytes acknowledge a row", n, len(message)) }, func(int, int, error) {}); err == nil && n > 0 {
			t.Errorf("%d of %d bytes are a message", n, len(message))
		}
	}
}

// TestVerdicts: what is retried, what is asked where the region went, and what
// ends the run; the classes are those of HBase's source.
func TestVerdicts(t *testing.T) {
	for class, want := range map[string]verdict{
		"org.apache.hadoop.hbase.RegionTooBusyException":                     pushback,
		"org.apache.hadoop.hbase.CallDroppedException":                       pushback,
		"org.apache.hadoop.hbase.regionserver.wal.WALClosedException":        retry,
		"org.apache.hadoop.hbase.NotServingRegionException":                  stale,
		"org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException":   permanentFailure,
		"org.apache.hadoop.hbase.regionserver.SomethingNobodyKnowsException": permanentFailure,
	} {
		err := &exception{class, class + ": x\n\tat y"}
		if got := judge(err); got != want {
			t.Errorf("%s: %d, want %d", class, got, want)
		}
	}
	for class := range verdicts {
		if _, both := permanent[class]; both {
			t.Errorf("%s is both permanent and not", class)
		}
	}
	if judge(errors.New("connection reset by peer")) != stale {
		t.Error("a lost connection is no reason to look where the region is")
	}
}
