package hbase

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tsuna/gohbase/compression"
	"github.com/tsuna/gohbase/compression/snappy"
	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/region"
)

// dialServerTimeout bounds one connection to a region server.
const dialServerTimeout = 5 * time.Second

// servers are the connections that puts are sent over, one a region server.
// They are not those of reads, which must not wait behind megabytes of cells.
type servers struct {
	client *Client

	mu     sync.Mutex
	byAddr map[serverKey]*server
}

// serverKey tells connections apart: one compresses all it sends, or nothing.
type serverKey struct {
	addr   string
	snappy bool
}

func newServers(c *Client) *servers {
	return &servers{client: c, byAddr: map[serverKey]*server{}}
}

func (s *servers) get(addr string, snappy bool) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := serverKey{addr, snappy}
	v := s.byAddr[key]
	if v == nil {
		v = &server{client: s.client, serverKey: key, lock: make(chan struct{}, 1)}
		v.lock <- struct{}{}
		s.byAddr[key] = v
	}
	return v
}

func (s *servers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.byAddr {
		v.drop(v.current())
	}
}

// server is one region server, connected when it is needed.
type server struct {
	client *Client
	serverKey
	lock chan struct{} // holds a token while nobody connects

	mu   sync.Mutex
	conn hrpc.RegionClient // nil: none
}

func (s *server) current() hrpc.RegionClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// connect gives the connection, a new one if there is none.
func (s *server) connect(ctx context.Context) (hrpc.RegionClient, error) {
	if conn := s.current(); conn != nil {
		return conn, nil
	}
	select {
	case <-s.lock:
		defer func() { s.lock <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if conn := s.current(); conn != nil {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialServerTimeout)
	defer cancel()
	var reason error // gohbase only logs it
	var codec compression.Codec
	if s.snappy {
		codec = snappy.New()
	}
	conn := region.NewClient(s.addr, region.RegionClient, &region.RegionClientOptions{
		QueueSize: 1, Codec: codec, ReadTimeout: scanTimeout, EffectiveUser: userName(), Logger: slog.New(s.client.complaints),
		Dialer: func(ctx context.Context, network, addr string) (c net.Conn, err error) {
			c, err = s.client.conns.dialServer(ctx, network, addr)
			reason = err
			return c, err
		},
	})
	if err := conn.Dial(ctx); err != nil {
		if reason == nil {
			reason = err
		}
		return nil, fmt.Errorf("connect to region server %s: %w", s.addr, reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	return conn, nil
}

// drop closes a connection that is broken or silent; the next call makes another.
func (s *server) drop(conn hrpc.RegionClient) {
	if conn == nil {
		return
	}
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
	}
	s.mu.Unlock()
	conn.Close()
}

// call sends a request and waits for its answer, or until ctx ends. The
// request's memory is the caller's again.
func (s *server) call(ctx context.Context, r *part) ([]byte, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	m := newMultiCall(ctx, r)
	// A write to a server that does not read ends only with the connection.
	stop := context.AfterFunc(ctx, func() { s.drop(conn) })
	conn.QueueRPC(m)
	stop()
	select {
	case result := <-m.result:
		if connectionEnded(result.Error) {
			s.drop(conn)
		}
		if result.Error != nil {
			return nil, result.Error
		}
		return result.Msg.ProtoReflect().GetUnknown(), nil
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			s.drop(conn) // silent for so long: if it lives, a new one will do as well
		}
		return nil, context.Cause(ctx)
	}
}
