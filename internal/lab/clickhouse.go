package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// ClusterName is the name of every lab cluster in remote_servers.
const ClusterName = "lab"

// Users that every lab ClickHouse has besides "default", which has no
// password. They exist on loopback servers that live for minutes.
const (
	MoverUser        = "mover"
	MoverPassword    = "mover-secret"
	ReadonlyUser     = "readonly" // readonly=1
	ReadonlyPassword = "readonly-secret"
)

// ClickHouseOptions describe a cluster. The zero value is three shards of 26.9.
type ClickHouseOptions struct {
	// Old starts 18.16, the oldest version the mover supports, not 26.9.
	Old bool
	// Shards and Replicas give the layout; 0 means 3 shards, 1 replica.
	Shards, Replicas int
	// ZooKeeper is the host:port that ReplicatedMergeTree uses. 18.16 with more
	// than one replica gets a ZooKeeper of its own when it is empty; 26.9 as
	// packaged has no ReplicatedMergeTree, so tests load each replica.
	ZooKeeper string
	// ConfigXML and UsersXML are merged into every node's configuration. They
	// are what stands inside the root element, for example
	// "<profiles><tight><max_memory_usage>1000000</max_memory_usage></tight></profiles>".
	ConfigXML, UsersXML []string
	// Log receives progress; nil means standard error.
	Log *slog.Logger
}

func (o ClickHouseOptions) withDefaults() ClickHouseOptions {
	if o.Shards == 0 {
		o.Shards = 3
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	o.Log = orStderr(o.Log)
	return o
}

func (o ClickHouseOptions) kind() string {
	if o.Old {
		return "clickhouse-old"
	}
	return "clickhouse"
}

// Cluster is a running ClickHouse cluster, known to its nodes as "lab".
type Cluster struct {
	// Version is what the nodes answer to SELECT version().
	Version string
	// Old tells 18.16 from 26.9.
	Old bool
	// Nodes are ordered by shard, then replica.
	Nodes []*Node
	// ZooKeeper is the host:port of the ensemble in use, "" without one.
	ZooKeeper string

	sess   *session
	shared bool       // used by other tests or owned by another process
	zk     *ZooKeeper // started by and for this cluster, or nil
}

// Node is one ClickHouse server. Its Server methods stop, kill, pause and
// restart it.
type Node struct {
	*Server

	Shard, Replica    int // counted from 1
	TCPPort, HTTPPort int

	interserver int // port that 18.16 fetches parts through
	old         bool
}

// TCPAddr is the host:port of the native protocol.
func (n *Node) TCPAddr() string { return loopback(n.TCPPort) }

// HTTPAddr is the host:port of the HTTP interface.
func (n *Node) HTTPAddr() string { return loopback(n.HTTPPort) }

// TCPAddrs lists the native addresses of all nodes.
func (c *Cluster) TCPAddrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.TCPAddr()
	}
	return addrs
}

// Shards is the number of shards.
func (c *Cluster) Shards() int { return c.Nodes[len(c.Nodes)-1].Shard }

// ExecAll runs a statement on every node at once: the lab's ON CLUSTER.
func (c *Cluster) ExecAll(ctx context.Context, sql string) error {
	return c.each(func(n *Node) error { return n.Exec(ctx, sql) })
}

// each runs f for all nodes at once and joins the errors.
func (c *Cluster) each(f func(n *Node) error) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() { errs[i] = f(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// StartClickHouse starts a cluster that belongs to the caller and returns when
// every node answers, or ctx ends. The caller must call Stop. ctx bounds the
// start only.
func StartClickHouse(ctx context.Context, opts ClickHouseOptions) (*Cluster, error) {
	opts = opts.withDefaults()
	p, err := newPreparer(opts.Log)
	if err != nil {
		return nil, err
	}
	launch, err := p.clickHouseLauncher(ctx, opts)
	if err != nil {
		return nil, err
	}
	sess, err := newSession()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Old: opts.Old, ZooKeeper: opts.ZooKeeper, sess: sess}
	if err := c.start(ctx, opts, launch); err != nil {
		return nil, errors.Join(fmt.Errorf("start ClickHouse: %w", err), c.Stop())
	}
	return c, nil
}

// launcher returns the command line of the node whose files are in dir.
type launcher func(dir string) []string

func (p *preparer) clickHouseLauncher(ctx context.Context, opts ClickHouseOptions) (launcher, error) {
	if opts.Old {
		binary, err := p.oldClickHouse(ctx)
		return func(dir string) []string { return []string{binary, "--config-file=" + dir + "/config.xml"} }, err
	}
	pkg, err := p.chdb(ctx)
	if err != nil {
		return nil, err
	}
	return func(dir string) []string { return []string{"python3", dir + "/chdbserver.py", pkg, dir} }, nil
}

func (c *Cluster) start(ctx context.Context, opts ClickHouseOptions, launch launcher) error {
	if opts.Old && opts.Replicas > 1 && opts.ZooKeeper == "" {
		zk, err := StartZooKeeper(ctx, opts.Log)
		if err != nil {
			return err
		}
		c.zk, c.ZooKeeper = zk, zk.Addr()
	}
	if err := c.layOut(opts); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(c.Nodes))
	for i, n := range c.Nodes {
		wg.Go(func() { errs[i] = c.startNode(ctx, n, opts, launch) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	version, err := c.Nodes[0].Query(ctx, "SELECT version()")
	c.Version = strings.TrimSpace(version)
	return err
}

// layOut chooses all ports before any node starts: each node's configuration
// names all of them.
func (c *Cluster) layOut(opts ClickHouseOptions) error {
	for shard := 1; shard <= opts.Shards; shard++ {
		for replica := 1; replica <= opts.Replicas; replica++ {
			var ports [3]int
			for i := range ports {
				port, err := c.sess.freePort()
				if err != nil {
					return err
				}
				ports[i] = port
			}
			name := fmt.Sprintf("%s-%d-%d", opts.kind(), shard, replica)
			n := &Node{Server: &Server{Name: name, grace: 20 * time.Second}, Shard: shard, Replica: replica,
				TCPPort: ports[0], HTTPPort: ports[1], interserver: ports[2], old: opts.Old}
			c.Nodes = append(c.Nodes, n)
		}
	}
	return nil
}

func (c *Cluster) startNode(ctx context.Context, n *Node, opts ClickHouseOptions, launch launcher) error {
	dir := c.sess.dir + "/" + n.Name
	if err := c.writeNodeFiles(dir, n, opts); err != nil {
		return err
	}
	n.spec = procSpec{name: n.Name, argv: launch(dir), dir: dir, env: []string{"TZ=UTC"}, logPath: dir + "/console.log", errLog: dir + "/server.err.log"}
	n.ready = func(ctx context.Context, _ *proc) error { return n.serving(ctx) }
	return n.start(ctx)
}

// serving checks both protocols.
func (n *Node) serving(ctx context.Context) error {
	if _, err := n.Query(ctx, "SELECT 1"); err != nil {
		return err
	}
	return dial(ctx, n.TCPAddr())
}

func dial(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Stop ends the nodes and removes their files. Only for clusters that the
// caller started.
func (c *Cluster) Stop() error {
	if c.shared {
		return fmt.Errorf("stop ClickHouse: %w", ErrShared)
	}
	err := c.each(func(n *Node) error { return n.discard() })
	if c.zk != nil {
		err = errors.Join(err, c.zk.Close())
	}
	return errors.Join(err, c.sess.close())
}
