package clickhouse_test

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

var limits = job.Limits{
	MaxExecutionTime:              60 * time.Second,
	MaxMemoryUsage:                2 << 30,
	MaxBytesBeforeExternalGroupBy: 1 << 30,
}

// A way is a server version and how it is asked.
type way struct {
	old      bool
	protocol job.Protocol
	tls      bool
}

// ways are all that are supported: the oldest server and the newest, over
// each protocol that it has, with and without TLS.
var ways = map[string]way{
	"26.9 native":      {},
	"26.9 native tls":  {tls: true},
	"26.9 http":        {protocol: job.HTTP},
	"26.9 http tls":    {protocol: job.HTTP, tls: true},
	"18.16 native":     {old: true},
	"18.16 native tls": {old: true, tls: true},
}

// A target is a cluster and a way to ask it.
type target struct {
	way
	*lab.Cluster

	// addrs are where the nodes are dialled.
	addrs     []string
	authority *lab.Authority
}

// onEach runs a test over every way.
func onEach(t *testing.T, test func(t *testing.T, c *target)) {
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		t.Run(name, func(t *testing.T) { test(t, over(t, shared(t, ways[name].old), ways[name])) })
	}
}

func shared(t *testing.T, old bool) *lab.Cluster {
	t.Helper()
	if old {
		return lab.Shared(t).OldClickHouse(t)
	}
	return lab.Shared(t).ClickHouse(t)
}

// start starts a cluster of one shard for the test alone.
func start(t *testing.T, opts lab.ClickHouseOptions) *lab.Cluster {
	t.Helper()
	opts.Shards = 1
	c, err := lab.StartClickHouse(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// over prepares a way to a cluster.
func over(t *testing.T, c *lab.Cluster, w way) *target {
	t.Helper()
	to := &target{way: w, Cluster: c}
	if w.tls {
		to.authority = lab.NewAuthority(t)
	}
	for _, n := range c.Nodes {
		to.addrs = append(to.addrs, to.secured(t, to.plain(n)))
	}
	return to
}

// plain is a node's port of the protocol.
func (c *target) plain(n *lab.Node) string {
	if c.protocol == job.HTTP {
		return n.HTTPAddr()
	}
	return n.TCPAddr()
}

// secured puts TLS in front of an address, if the target has it.
func (c *target) secured(t *testing.T, addr string) string {
	t.Helper()
	if !c.tls {
		return addr
	}
	cert, key := c.authority.Issue(t, "127.0.0.1", false)
	return lab.TLSProxy(t, addr, cert, key, nil)
}

func source(c *target) job.Source {
	s := job.Source{
		Addresses: c.addrs[:1], Cluster: lab.ClusterName, Protocol: c.protocol,
		Username: lab.MoverUser, Password: lab.MoverPassword, NodeMap: map[string]string{},
	}
	for i, n := range c.Nodes {
		s.NodeMap[n.TCPAddr()] = c.addrs[i]
	}
	if c.tls {
		s.TLS = &job.TLS{CA: c.authority.PEM}
	}
	return s
}

func open(t *testing.T, src job.Source, l job.Limits) *clickhouse.Client {
	t.Helper()
	c, err := tryOpen(t, src, l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryOpen(t *testing.T, src job.Source, l job.Limits) (*clickhouse.Client, error) {
	t.Helper()
	c, err := clickhouse.Open(t.Context(), src, l, 2, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}
