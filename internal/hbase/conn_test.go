package hbase

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// Batches and single requests are written to one connection by different
// goroutines. A batch that went out in several pieces would let a request come
// in between, and the region server would read a broken stream.
func TestBatchesGoOutInOnePiece(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	received := make(chan []byte)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			close(received)
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		received <- all
	}()
	conns := newConnections(nil)
	defer conns.close()
	conn, err := conns.dialServer(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const rounds, pieces = 300, 50
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			batch := make(net.Buffers, pieces)
			for i := range batch {
				batch[i] = []byte("b")
			}
			if _, err := batch.WriteTo(conn); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range rounds {
			if _, err := conn.Write([]byte("s")); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, c := range <-received {
		if c == 'b' {
			run++
			continue
		}
		if run%pieces != 0 {
			t.Fatalf("a request came in after %d of a batch's %d pieces", run%pieces, pieces)
		}
		run = 0
	}
}
