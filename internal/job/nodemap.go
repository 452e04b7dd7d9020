package job

import (
	"cmp"
	"net"
)

// MapAddress replaces host:port, or else host, by a node map;
// what replaces it keeps the port unless it has one of its own.
func MapAddress(nodeMap map[string]string, address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return cmp.Or(nodeMap[address], address)
	}
	return MapHost(nodeMap, address, port)
}

// MapHost is [MapAddress] for an address whose port is not the one to dial:
// port is, unless the node map gives one.
func MapHost(nodeMap map[string]string, address, port string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	to, ok := nodeMap[address]
	if !ok {
		to, ok = nodeMap[host]
	}
	if !ok {
		return net.JoinHostPort(host, port)
	}
	if _, _, err := net.SplitHostPort(to); err == nil {
		return to
	}
	return net.JoinHostPort(to, port)
}
