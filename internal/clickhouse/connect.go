package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

const (
	// dialTimeout bounds connecting and logging in.
	dialTimeout = 4 * time.Second
	// idleTimeout is shorter than any server keeps an idle HTTP connection: a
	// query never goes out on one that the server is about to close.
	idleTimeout = 2 * time.Second
	// resultBuffer is what a server keeps of a result in memory, in bytes, before
	// it sends it over HTTP.
	resultBuffer = 1 << 20
)

// dial makes a node; nothing is sent yet.
func dial(addr string, src job.Source, limits job.Limits, conns int, log *slog.Logger) (*Node, error) {
	secure, err := tlsConfig(src.TLS, addr)
	if err != nil {
		return nil, fmt.Errorf("source.tls: %w", err)
	}
	n := &Node{Addr: addr, log: log, limits: limits, http: src.Protocol == job.HTTP}
	options := &ch.Options{
		Addr: []string{addr},
		Auth: ch.Auth{Username: src.Username, Password: string(src.Password)},
		// The driver's ReadTimeout runs from the start of a query to its end.
		ReadTimeout:     limits.MaxExecutionTime + 2*drain,
		DialTimeout:     dialTimeout,
		MaxOpenConns:    conns,
		MaxIdleConns:    conns,
		Compression:     &ch.Compression{Method: ch.CompressionLZ4},
		BlockBufferSize: 1,
		ClientInfo: ch.ClientInfo{Products: []struct{ Name, Version string }{
			{Name: "ck2hbase", Version: ""},
		}},
		Logger: slog.New(slog.DiscardHandler), // errors are returned, once
	}
	if n.http {
		overHTTP(options, secure, src.TLS != nil && len(src.TLS.Cert) > 0)
	} else {
		n.lives = func() bool { return greets(*options, secure) }
		// The driver leaves TLS to whoever gives it a DialContext.
		options.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := connect(ctx, addr, secure)
			if err != nil {
				return nil, err
			}
			return &heard{Conn: conn, limit: silence, alive: n.lives}, nil
		}
	}
	n.conn, err = ch.Open(options)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", addr, err)
	}
	return n, nil
}

// overHTTP completes the options of a node that is asked over HTTP.
func overHTTP(options *ch.Options, secure *tls.Config, certificate bool) {
	options.Protocol = ch.HTTP
	options.TLS = secure
	// The server says how a query ended, and how many rows it has, before it
	// sends the first of them. Until then it keeps that much of the result in
	// memory, and the rest in a temporary file.
	options.Settings = ch.Settings{"wait_end_of_query": 1, "buffer_size": resultBuffer}
	options.DialContext = func(ctx context.Context, addr string) (net.Conn, error) { return connect(ctx, addr, nil) }
	options.TransportFunc = func(t *http.Transport) (http.RoundTripper, error) {
		t.IdleConnTimeout = idleTimeout
		t.TLSHandshakeTimeout = dialTimeout
		return &transport{base: t, certificate: certificate}, nil
	}
	options.DialStrategy = func(ctx context.Context, id int, opt *ch.Options, dial ch.Dial) (ch.DialResult, error) {
		// A new connection begins with a question of the driver's own, which
		// must not pass for the query that the connection is for, nor get a
		// max_execution_time from the driver's deadline.
		ctx, stop := untimed(withProof(ctx, nil), dialTimeout)
		defer stop()
		r, err := ch.DefaultDialStrategy(ch.Context(ctx, ch.WithQueryID(""), ch.WithSettings(ch.Settings{})), id, opt, dial)
		return r, timerCause(ctx, err)
	}
}

// greets tells whether a server logs a new connection in and answers on it.
// options are those of its pool, which may have no connection to spare.
func greets(options ch.Options, secure *tls.Config) bool {
	ctx, stop := context.WithTimeout(context.Background(), 2*dialTimeout)
	defer stop()
	options.MaxOpenConns, options.MaxIdleConns, options.ReadTimeout = 1, 1, dialTimeout
	options.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := connect(ctx, addr, secure)
		if err != nil {
			return nil, err
		}
		return &heard{Conn: conn, limit: dialTimeout, alive: func() bool { return false }}, nil
	}
	conn, err := ch.Open(&options)
	if err != nil {
		return false
	}
	defer conn.Close()
	return conn.Ping(ctx) == nil
}

// connect dials, with TLS if secure is not nil.
func connect(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	if secure == nil {
		return d.DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, "tcp", addr)
}

// tlsConfig is nil where t is.
func tlsConfig(t *job.TLS, addr string) (*tls.Config, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // no TLS is a configuration
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CA != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("the authorities' file holds no certificate")
		}
	}
	if t.Cert != nil {
		pair, err := tls.X509KeyPair(t.Cert, []byte(t.Key))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
