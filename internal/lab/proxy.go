package lab

import (
	"fmt"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// NetProxy is a TCP proxy in this process between a client and a server, whose
// traffic can be delayed, cut and refused. Its methods fail the test on error.
type NetProxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// Direction says whose bytes a toxic touches.
type Direction string

// The two directions.
const (
	ToClient Direction = "downstream" // what the server sends
	ToServer Direction = "upstream"   // what the client sends
)

// Proxy starts a proxy in front of upstream (host:port) on a free loopback
// port. It ends with the test.
func Proxy(t testing.TB, upstream string) *NetProxy {
	t.Helper()
	nop := zerolog.Nop()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), nop)
	p := &NetProxy{t: t, proxy: toxiproxy.NewProxy(server, "lab", "127.0.0.1:0", upstream)}
	if err := p.proxy.Start(); err != nil {
		t.Fatalf("proxy to %s: %v", upstream, err)
	}
	t.Cleanup(p.proxy.Stop)
	return p
}

// Addr is the host:port to connect to instead of the server's. It stays the
// same when the proxy is disabled and enabled again.
func (p *NetProxy) Addr() string { return p.proxy.Listen }

// Disable closes all connections and refuses new ones.
func (p *NetProxy) Disable() { p.proxy.Stop() }

// Enable takes connections again after Disable.
func (p *NetProxy) Enable() {
	p.t.Helper()
	if err := p.proxy.Start(); err != nil {
		p.t.Fatalf("proxy: enable: %v", err)
	}
}

// Latency delays everything in one direction by ms, give or take jitter ms.
func (p *NetProxy) Latency(d Direction, ms, jitter int) {
	p.t.Helper()
	p.add("latency", d, fmt.Sprintf(`"latency":%d,"jitter":%d`, ms, jitter))
}

// ResetPeer resets every connection ms after it moved its first byte; 0 means
// at once.
func (p *NetProxy) ResetPeer(d Direction, ms int) {
	p.t.Helper()
	p.add("reset_peer", d, fmt.Sprintf(`"timeout":%d`, ms))
}

// LimitData closes every connection after that many bytes in one direction.
func (p *NetProxy) LimitData(d Direction, bytes int64) {
	p.t.Helper()
	p.add("limit_data", d, fmt.Sprintf(`"bytes":%d`, bytes))
}

// Timeout swallows all data in one direction and closes the connection after
// ms; 0 means never: the peer just does not answer.
func (p *NetProxy) Timeout(d Direction, ms int) {
	p.t.Helper()
	p.add("timeout", d, fmt.Sprintf(`"timeout":%d`, ms))
}

// Bandwidth limits one direction to that many KB per second.
func (p *NetProxy) Bandwidth(d Direction, kbPerSecond int64) {
	p.t.Helper()
	p.add("bandwidth", d, fmt.Sprintf(`"rate":%d`, kbPerSecond))
}

// Heal removes all toxics; running connections go on.
func (p *NetProxy) Heal() {
	p.t.Helper()
	p.proxy.Toxics.ResetToxics(p.t.Context())
}

func (p *NetProxy) add(kind string, d Direction, attributes string) {
	p.t.Helper()
	// A toxic's name is its kind and direction: adding it again is an error.
	json := fmt.Sprintf(`{"type":%q,"stream":%q,"toxicity":1,"attributes":{%s}}`, kind, d, attributes)
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(json)); err != nil {
		p.t.Fatalf("proxy: add %s: %v", kind, err)
	}
}
