package clickhouse

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A read waits for a server that talks as long as it likes, for a silent one
// for the limit, and never beyond the driver's deadline.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer server.Close()
		c := &heard{Conn: client, limit: 30 * time.Second}
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
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "said nothing for 30s") || time.Since(begin) != 30*time.Second {
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
