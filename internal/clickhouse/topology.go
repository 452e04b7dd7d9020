package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// host is one row of system.clusters.
type host struct {
	shard, replica uint32
	name, address  string
	port           uint16
}

func (n *Node) topology(ctx context.Context, cluster string) ([]host, error) {
	var hosts []host
	sql := "SELECT shard_num, replica_num, host_name, host_address, port FROM system.clusters WHERE cluster = " + Quote(cluster)
	err := n.Rows(ctx, Query{SQL: sql}, func(scan func(...any) error) error {
		var h host
		if err := scan(&h.shard, &h.replica, &h.name, &h.address, &h.port); err != nil {
			return err
		}
		hosts = append(hosts, h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading system.clusters: %w", err)
	}
	if len(hosts) > 0 {
		return hosts, nil
	}
	names, err := n.clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading system.clusters: %w", err)
	}
	return nil, failure.New(failure.Preflight, fmt.Errorf("%w %q at ClickHouse %s", errNoCluster, cluster, n.Addr),
		"set source.cluster to one of: "+strings.Join(names, ", "))
}

func (n *Node) clusters(ctx context.Context) ([]string, error) {
	var names []string
	err := n.Rows(ctx, Query{SQL: "SELECT DISTINCT cluster FROM system.clusters ORDER BY cluster"}, func(scan func(...any) error) error {
		var name string
		if err := scan(&name); err != nil {
			return err
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// dialAddr is where the host is reached from here. system.clusters knows the
// port through which the nodes reach each other: the native one without TLS.
// Any other is that of the source's addresses, or stands in the node map.
func (h host) dialAddr(src job.Source) (string, error) {
	address := net.JoinHostPort(h.name, strconv.Itoa(int(h.port)))
	if src.Protocol != job.HTTP && src.TLS == nil {
		return job.MapAddress(src.NodeMap, address), nil
	}
	ports := portsOf(src.Addresses)
	if len(ports) == 1 {
		return job.MapHost(src.NodeMap, address, ports[0]), nil
	}
	mapped := job.MapHost(src.NodeMap, address, "")
	if _, port, err := net.SplitHostPort(mapped); err != nil || port == "" {
		return "", failure.New(failure.Preflight, fmt.Errorf("%w of %s: system.clusters does not hold it, and source.addresses have the ports %s",
			errNoPort, address, strings.Join(ports, ", ")),
			"give addresses of one port, or map each node to its host:port in source.node_map")
	}
	return mapped, nil
}

var errNoPort = errors.New("there is no knowing the port")

// portsOf gives the ports of addresses, each once.
func portsOf(addresses []string) []string {
	var ports []string
	seen := map[string]bool{}
	for _, a := range addresses {
		if _, port, err := net.SplitHostPort(a); err == nil && !seen[port] {
			seen[port] = true
			ports = append(ports, port)
		}
	}
	return ports
}
