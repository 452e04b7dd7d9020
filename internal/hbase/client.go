package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/tsuna/gohbase"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

const (
	// dialTimeout bounds all checks of Dial.
	dialTimeout = 10 * time.Second
	// callTimeout bounds one Get, Put, CheckAndPut or scan request.
	callTimeout = 30 * time.Second
	// scanTimeout bounds one request of a scan: a server that finds nothing says
	// so after half of its own limit, which is 30 s unless it was changed.
	scanTimeout = 60 * time.Second
	// adminTimeout bounds the creation of a table, with all its regions.
	adminTimeout = 2 * time.Minute
	// lookupTimeout is gohbase's patience with one look-up of a region before it tries again.
	lookupTimeout = 10 * time.Second
	// sessionTimeout is that of the short ZooKeeper sessions.
	sessionTimeout = 10 * time.Second
)

// Client talks to one HBase cluster. It is safe for concurrent use.
type Client struct {
	cluster    job.HBaseCluster
	log        *slog.Logger
	data       gohbase.Client
	conns      *connections
	complaints *complaints
	servers    *servers
}

// Dial checks that the cluster can be used from here and connects to it,
// within ten seconds. Errors have class Preflight and a remedy; the end of ctx
// is an interruption. The caller must call Close.
func Dial(ctx context.Context, cluster job.HBaseCluster, log *slog.Logger) (*Client, error) {
	cluster.ZooKeeper = withPorts(cluster.ZooKeeper)
	c, err := dial(ctx, cluster, log)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("connect to HBase %s: %w", cluster.Name, context.Cause(ctx))
	}
	return c, err
}

func dial(ctx context.Context, cluster job.HBaseCluster, log *slog.Logger) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := checkCluster(ctx, cluster); err != nil {
		return nil, err
	}
	c := &Client{cluster: cluster, log: log, conns: newConnections(cluster.NodeMap), complaints: newComplaints(log)}
	c.servers = newServers(c)
	c.data = gohbase.NewClient(strings.Join(cluster.ZooKeeper, ","), append(c.options(c.conns, c.complaints),
		// One request a batch and server, at once: a longer queue would wait for more.
		gohbase.RpcQueueSize(1))...)
	if _, err := c.Get(ctx, metaTable, []byte("ck2hbase"), 0, 0); err != nil {
		err = preflight(fmt.Errorf("%s: HBase does not answer: %w", c.Name(), err),
			"check that the master and the region servers run, and that this machine may reach them")
		// In this order: gohbase must not close a connection while it makes it.
		c.conns.close()
		c.data.Close()
		return nil, err
	}
	return c, nil
}

// options are common to the data and the admin client.
func (c *Client) options(conns *connections, log *complaints) []gohbase.Option {
	return []gohbase.Option{
		gohbase.ZookeeperRoot(c.cluster.ZNode),
		gohbase.ZookeeperTimeout(sessionTimeout),
		gohbase.RegionLookupTimeout(lookupTimeout),
		gohbase.RegionReadTimeout(scanTimeout),
		gohbase.EffectiveUser(userName()),
		gohbase.RegionDialer(conns.dialServer),
		gohbase.ZooKeeperDialer(conns.dial),
		gohbase.Logger(slog.New(log)),
	}
}

// userName is the name that HBase sees, as with its own client: that of the
// operating system's user.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "ck2hbase"
}

// Name is the cluster's name in the job file.
func (c *Client) Name() string { return c.cluster.Name }

// Close ends all connections. Calls under way end with errors.
func (c *Client) Close() {
	c.data.Close()
	c.servers.close()
	c.conns.close()
}

// rpc sends one call with gohbase's retries.
func (c *Client) rpc() gohbase.RPCClient { return c.data.(gohbase.RPCClient) }

func withPorts(hosts []string) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(h, "2181")
		}
		out[i] = h
	}
	return out
}

// connections makes network connections for gohbase and ends them all on
// close: gohbase itself leaks those of its admin client and of ZooKeeper
// look-ups that nobody waits for any more.
type connections struct {
	nodeMap map[string]string

	mu     sync.Mutex
	open   map[*trackedConn]struct{}
	closed bool
	ended  chan struct{} // closed when the last connection of a closed client has ended
}

func newConnections(nodeMap map[string]string) *connections {
	return &connections{nodeMap: nodeMap, open: map[*trackedConn]struct{}{}, ended: make(chan struct{})}
}

var errClosed = errors.New("the HBase client is closed")

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(errClosed, conn.Close())
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %s connection to %s is no TCP connection", network, address), conn.Close())
	}
	t := &trackedConn{TCPConn: tcp, owner: c}
	c.open[t] = struct{}{}
	return t, nil
}

// dialServer is dial for the advertised address of a server.
func (c *connections) dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	return c.dial(ctx, network, job.MapAddress(c.nodeMap, address))
}

// endTimeout is how long close waits for gohbase to let go of its connections.
const endTimeout = time.Second

// close ends all connections, refuses new ones, and gives gohbase's goroutines
// time to notice.
func (c *connections) close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	for t := range c.open {
		_ = t.TCPConn.Close() // nothing was promised about it
	}
	if len(c.open) == 0 {
		close(c.ended)
	}
	c.mu.Unlock()
	select {
	case <-c.ended:
	case <-time.After(endTimeout):
	}
}

// forget is called by gohbase's own Close of a connection.
func (c *connections) forget(t *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.open[t]; !there {
		return
	}
	delete(c.open, t)
	if c.closed && len(c.open) == 0 {
		close(c.ended)
	}
}

// trackedConn forgets itself when it is closed. It embeds the TCP connection
// and not net.Conn: gohbase sends a batch as net.Buffers, which only a
// connection with the TCP connection's own methods takes in one atomic writev.
// On any other, a request of another goroutine could come in between, and the
// region server would read a broken stream.
type trackedConn struct {
	*net.TCPConn
	owner *connections
}

func (t *trackedConn) Close() error {
	t.owner.forget(t)
	return t.TCPConn.Close()
}
