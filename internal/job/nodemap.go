package job

import "net"

// MapAddress replaces host:port, or else host, by a node map;
// what replaces it keeps the port unless it has one of its own.
func MapAddress(nodeMap map[string]string, address string) string {
	if to, ok := nodeMap[address]; ok {
		return withPortOf(to, address)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if to, ok := nodeMap[host]; ok {
		return withPortOf(to, address)
	}
	return address
}

// withPortOf gives to the port of address if it has none.
func withPortOf(to, address string) string {
	if _, _, err := net.SplitHostPort(to); err == nil {
		return to
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return to
	}
	return net.JoinHostPort(to, port)
}
