package mover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// TestP1ExactOverEveryWay: what arrives does not depend on how the servers are
// asked.
func TestP1ExactOverEveryWay(t *testing.T) {
	for _, s := range servers {
		for _, protocol := range []string{"native", "http"} {
			if s.name == "18.16" && protocol == "http" {
				continue // it is refused, see package clickhouse
			}
			for _, secure := range []bool{false, true} {
				name := s.name + " " + protocol
				if secure {
					name += " tls"
				}
				t.Run(name, func(t *testing.T) {
					c := s.loaded(t)
					j := load(t, c, "../../examples/flights.yaml", append(through(t, c, protocol, secure),
						"source.table="+database+".flights", "scatter.slices=5")...)
					if _, err := run(t, j, "2013-12-31"); err != nil {
						t.Fatal(err)
					}
					equal(t, flightsTruth(t, c), tableOf(t, j))
				})
			}
		}
	}
}

// through gives the overrides that lead a job to the nodes by a protocol.
func through(t *testing.T, c *lab.Cluster, protocol string, secure bool) []string {
	t.Helper()
	authority := lab.NewAuthority(t)
	var addrs, nodeMap []string
	for _, n := range c.Nodes {
		addr := n.TCPAddr()
		if protocol == "http" {
			addr = n.HTTPAddr()
		}
		if secure {
			cert, key := authority.Issue(t, "127.0.0.1", false)
			addr = lab.TLSProxy(t, addr, cert, key, nil)
		}
		addrs = append(addrs, addr)
		nodeMap = append(nodeMap, "'"+n.TCPAddr()+"': '"+addr+"'")
	}
	overrides := []string{
		"source.protocol=" + protocol, "source.addresses=[" + strings.Join(addrs, ", ") + "]",
		"source.node_map={" + strings.Join(nodeMap, ", ") + "}",
	}
	if secure {
		ca := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(ca, authority.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
		overrides = append(overrides, "source.tls={ca_file: '"+ca+"'}")
	}
	return overrides
}
