package lab

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echo starts a server that sends back what it gets, and connects to it
// through a proxy.
func echo(t *testing.T) *NetProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return Proxy(t, l.Addr().String())
}

func dialProxy(t *testing.T, p *NetProxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

// roundTrip sends n bytes and reads them back.
func roundTrip(c net.Conn, n int) (int, error) {
	if _, err := c.Write(make([]byte, n)); err != nil {
		return 0, err
	}
	return io.ReadFull(c, make([]byte, n))
}

func TestProxyToxics(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		if n, err := roundTrip(dialProxy(t, echo(t)), 1000); n != 1000 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("latency", func(t *testing.T) {
		p := echo(t)
		p.Latency(ToClient, 150, 0)
		begin := time.Now()
		if _, err := roundTrip(dialProxy(t, p), 10); err != nil || time.Since(begin) < 150*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		p.Heal()
		if n, err := roundTrip(dialProxy(t, p), 10); n != 10 || err != nil {
			t.Errorf("healed: %d bytes, %v", n, err)
		}
	})
	t.Run("limit_data", func(t *testing.T) {
		p := echo(t)
		p.LimitData(ToClient, 100)
		if n, err := roundTrip(dialProxy(t, p), 1000); n != 100 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("reset_peer", func(t *testing.T) {
		p := echo(t)
		p.ResetPeer(ToClient, 0)
		if _, err := roundTrip(dialProxy(t, p), 10); err == nil {
			t.Error("no error from a connection that was reset")
		}
	})
	t.Run("timeout", func(t *testing.T) {
		p := echo(t)
		p.Timeout(ToClient, 100)
		if n, err := roundTrip(dialProxy(t, p), 10); n != 0 || err == nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("disable", func(t *testing.T) {
		p := echo(t)
		c, addr := dialProxy(t, p), p.Addr()
		if _, err := roundTrip(c, 10); err != nil {
			t.Fatal(err)
		}
		p.Disable()
		if _, err := roundTrip(c, 10); err == nil {
			t.Error("a connection outlived its proxy")
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Error("a disabled proxy takes connections")
		}
		p.Enable()
		if n, err := roundTrip(dialProxy(t, p), 10); p.Addr() != addr || n != 10 || err != nil {
			t.Errorf("enabled again at %s (was %s): %d bytes, %v", p.Addr(), addr, n, err)
		}
	})
}
