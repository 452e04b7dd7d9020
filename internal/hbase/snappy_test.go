package hbase

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted forwards connections to a server and counts what is sent to it.
func counted(t *testing.T, server string) (addr string, sent *atomic.Int64) {
	t.Helper()
	sent = new(atomic.Int64)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	forward := func(in net.Conn) {
		defer in.Close()
		out, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer out.Close()
		go func() { _, _ = io.Copy(in, out) }()
		_, _ = io.Copy(out, io.TeeReader(in, counter{sent}))
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go forward(in)
		}
	}()
	return l.Addr().String(), sent
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// TestSnappy: compressed cells are those that were written, in blocks of several
// chunks, and are fewer bytes on their way.
func TestSnappy(t *testing.T) {
	plain := dialLab(t)
	name := newTable(t, plain)
	regions, err := plain.Regions(t.Context(), name)
	if err != nil || len(regions) != 1 {
		t.Fatal(regions, err)
	}
	addr, sent := counted(t, regions[0].Server)
	through := cluster(t)
	through.NodeMap = map[string]string{regions[0].Server: addr}
	c, err := Dial(t.Context(), through, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const rows = 4000
	value := func(i int) string { return fmt.Sprint(i, strings.Repeat(" the same words", 20)) }
	var took [2]int64
	for i, snappy := range []bool{false, true} {
		sender := c.NewSender(name, SendOptions{Timeout: time.Minute, Snappy: snappy})
		p := NewPuts("f", []string{"q"}, base+int64(i))
		for i := range rows {
			p.BeginRow(fmt.Appendf(nil, "row-%06d", i))
			p.EndCell(0, append(p.Cell(0), value(i)...))
			p.EndRow()
		}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		before := sent.Load()
		if err := sender.Send(t.Context(), p); err != nil || p.Pending() != 0 {
			t.Fatalf("snappy %v: %d pending, %v", snappy, p.Pending(), err)
		}
		took[i] = sent.Load() - before
	}
	if took[0] < rows*300 || took[1] > took[0]/4 {
		t.Errorf("%d bytes as they are, %d compressed", took[0], took[1])
	}
	for _, i := range []int{0, 1, 777, rows - 1} {
		row, err := plain.Get(t.Context(), name, fmt.Appendf(nil, "row-%06d", i), base+1, base+2)
		if err != nil || !slices.ContainsFunc(row.Cells, func(c Cell) bool { return string(c.Value) == value(i) }) {
			t.Errorf("row %d: %+v, %v", i, row, err)
		}
	}
	if n, err := plain.ScanKeys(t.Context(), name, base+1, base+2, 1, func([]byte) error { return nil }); n != rows || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}
