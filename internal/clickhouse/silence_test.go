package clickhouse

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A read waits for a server that talks or lives as long as it likes, for another
// one for the limit, and never beyond the driver's deadline.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer server.Close()
		lives := 3
		c := &heard{Conn: client, limit: 30 * time.Second, alive: func() bool { lives--; return lives >= 0 }}
		defer c.Close()
		if err := c.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 20 { // five minutes
				time.Sleep(15 * time.Second)
				_, _ = server.Write([]byte("."))
			}
		}()
		var b [1]byte
		for range 20 {
			if _, err := c.Read(b[:]); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		_, err := c.Read(b[:])
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "said nothing for 30s") || !errors.Is(err, errSilent) || time.Since(begin) != 4*30*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if kind, _ := classifyWay(err); kind != KindElsewhere {
			t.Errorf("a silent server: %v", err)
		}
		if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		if _, err := c.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(err.Error(), "said nothing") || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// A server that logs one in lives; a port that takes connections does not make
// a server.
func TestGreets(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	for _, c := range []struct {
		addr string
		want bool
	}{
		{lab.Shared(t).ClickHouse(t).Nodes[0].TCPAddr(), true},
		{lab.Shared(t).OldClickHouse(t).Nodes[0].TCPAddr(), true},
		{frozen.Addr().String(), false},
	} {
		src := job.Source{Username: lab.MoverUser, Password: lab.MoverPassword}
		n, err := dial(c.addr, src, job.Limits{MaxExecutionTime: time.Minute}, 1, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.lives(); got != c.want {
			t.Errorf("%s lives: %v, want %v", c.addr, got, c.want)
		}
		_ = n.Close()
	}
}
