package hbase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// connectTimeout bounds one TCP connection of the checks.
const connectTimeout = 3 * time.Second

// checkCluster says what is wrong with a cluster before gohbase could hang on it.
func checkCluster(ctx context.Context, cluster job.HBaseCluster) error {
	if err := checkQuorum(ctx, cluster); err != nil {
		return err
	}
	servers, err := regionServers(ctx, cluster)
	if err != nil {
		return err
	}
	return checkServers(ctx, cluster, servers)
}

// checkQuorum wants one ZooKeeper to accept a connection.
func checkQuorum(ctx context.Context, cluster job.HBaseCluster) error {
	errs := reachAll(ctx, cluster.ZooKeeper)
	if slices.Contains(errs, nil) {
		return nil
	}
	return preflight(fmt.Errorf("HBase %s: no ZooKeeper at %s: %w", cluster.Name, strings.Join(cluster.ZooKeeper, ", "), errors.Join(errs...)),
		"check zookeeper: in the job file, and that this machine may reach it")
}

// reachAll opens a connection to each address at once; the errors are in the
// addresses' order.
func reachAll(ctx context.Context, addresses []string) []error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	type result struct {
		i   int
		err error
	}
	results := make(chan result, len(addresses))
	for i, a := range addresses {
		go func() {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", a)
			if err == nil {
				err = conn.Close()
			}
			results <- result{i, err}
		}()
	}
	errs := make([]error, len(addresses))
	for range addresses {
		r := <-results
		errs[r.i] = r.err
	}
	return errs
}

// regionServers reads the addresses that HBase registered in ZooKeeper.
func regionServers(ctx context.Context, cluster job.HBaseCluster) ([]string, error) {
	quorum := strings.Join(cluster.ZooKeeper, ", ")
	conn, _, err := zk.Connect(cluster.ZooKeeper, sessionTimeout, zk.WithLogInfo(false))
	if err != nil {
		return nil, preflight(fmt.Errorf("HBase %s: ZooKeeper at %s: %w", cluster.Name, quorum, err), "check zookeeper: in the job file")
	}
	defer conn.Close()
	children, err := within(ctx, func() ([]string, error) {
		names, _, err := conn.Children(cluster.ZNode + "/rs")
		return names, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, noRegistry(ctx, conn, cluster, quorum)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, preflight(fmt.Errorf("HBase %s: %s accepts connections but does not answer as ZooKeeper does: %w", cluster.Name, quorum, err),
			"check zookeeper: in the job file: is it the client port, usually 2181?")
	case err != nil:
		return nil, preflight(fmt.Errorf("HBase %s: read %s/rs from ZooKeeper at %s: %w", cluster.Name, cluster.ZNode, quorum, err), "")
	case len(children) == 0:
		return nil, preflight(fmt.Errorf("HBase %s: no region server is registered under znode %s at %s", cluster.Name, cluster.ZNode, quorum), "start the region servers")
	}
	servers := make([]string, 0, len(children))
	for _, name := range children { // host,port,start code
		if fields := strings.Split(name, ","); len(fields) == 3 {
			servers = append(servers, net.JoinHostPort(fields[0], fields[1]))
		}
	}
	return servers, nil
}

// noRegistry proposes a znode that looks as if HBase were there.
func noRegistry(ctx context.Context, conn *zk.Conn, cluster job.HBaseCluster, quorum string) error {
	remedy := fmt.Sprintf("is the znode %s right, and does HBase run? zookeeper.znode.parent in hbase-site.xml names it", cluster.ZNode)
	roots, err := within(ctx, func() ([]string, error) {
		names, _, err := conn.Children("/")
		return names, err
	})
	if err == nil {
		var found []string
		for _, name := range roots {
			there, err := within(ctx, func() (bool, error) {
				exists, _, err := conn.Exists("/" + name + "/rs")
				return exists, err
			})
			if err == nil && there {
				found = append(found, "/"+name)
			}
		}
		if len(found) > 0 {
			remedy += "; there is one under " + strings.Join(found, ", ")
		}
	}
	return preflight(fmt.Errorf("HBase %s: no HBase registered under znode %s of ZooKeeper at %s", cluster.Name, cluster.ZNode, quorum), remedy)
}

// within waits for f as long as ctx allows; f ends when its connection is closed.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// checkServers wants every region server's name to resolve and one of them to
// accept a connection.
func checkServers(ctx context.Context, cluster job.HBaseCluster, servers []string) error {
	mapped := make([]string, len(servers))
	for i, s := range servers {
		mapped[i] = job.MapAddress(cluster.NodeMap, s)
		host, _, err := net.SplitHostPort(mapped[i])
		if err != nil {
			return preflight(fmt.Errorf("HBase %s: node_map gives %q for %s, which is no host", cluster.Name, mapped[i], s), "")
		}
		lookup, cancel := context.WithTimeout(ctx, connectTimeout)
		_, err = net.DefaultResolver.LookupHost(lookup, host)
		cancel()
		if err != nil {
			return preflight(fmt.Errorf("HBase %s: the region server's host name %s does not resolve here: %w", cluster.Name, host, err),
				fmt.Sprintf("add it to the name service, or to the cluster's node_map: {%s: ADDRESS}", host))
		}
	}
	errs := reachAll(ctx, mapped)
	if slices.Contains(errs, nil) {
		return nil
	}
	return preflight(fmt.Errorf("HBase %s: no region server can be reached: %w", cluster.Name, errors.Join(errs...)),
		"check that this machine may reach them; node_map replaces addresses that are only valid inside the cluster")
}
