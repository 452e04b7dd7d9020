package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A connection that cannot be trusted is refused, with what to do about it.
func TestTLSRefused(t *testing.T) {
	ours, theirs := lab.NewAuthority(t), lab.NewAuthority(t)
	for _, w := range []way{{}, {old: true}, {protocol: job.HTTP}} {
		t.Run(fmt.Sprintf("old %v %s", w.old, w.protocol), func(t *testing.T) {
			c := over(t, shared(t, w.old), w)
			proxy := func(host string, expired bool, clients *lab.Authority) string {
				cert, key := ours.Issue(t, host, expired)
				return lab.TLSProxy(t, c.addrs[0], cert, key, clients)
			}
			good, wantsCert := proxy("127.0.0.1", false, nil), proxy("127.0.0.1", false, ours)
			cert, key := ours.Issue(t, "mover", false)
			otherCert, otherKey := theirs.Issue(t, "mover", false)
			cases := map[string]struct {
				addr   string
				tls    *job.TLS
				remedy string // empty: accepted
				key    string
			}{
				"good":                {good, &job.TLS{CA: ours.PEM}, "", ""},
				"name given":          {proxy("ck1.internal", false, nil), &job.TLS{CA: ours.PEM, ServerName: "ck1.internal"}, "", ""},
				"client certificate":  {wantsCert, &job.TLS{CA: ours.PEM, Cert: cert, Key: job.Secret(key)}, "", ""},
				"machine's CAs":       {good, &job.TLS{}, "source.tls.ca_file", "source.tls"},
				"another CA":          {good, &job.TLS{CA: theirs.PEM}, "source.tls.ca_file", "source.tls"},
				"another name":        {proxy("ck1.internal", false, nil), &job.TLS{CA: ours.PEM}, "source.tls.server_name to a name that it holds (ck1.internal)", "source.tls"},
				"expired":             {proxy("127.0.0.1", true, nil), &job.TLS{CA: ours.PEM}, "not valid", "source.tls"},
				"no certificate":      {wantsCert, &job.TLS{CA: ours.PEM}, "cert_file", "source.tls"},
				"another certificate": {wantsCert, &job.TLS{CA: ours.PEM, Cert: otherCert, Key: job.Secret(otherKey)}, "cert_file", "source.tls"},
				"plain port":          {c.addrs[0], &job.TLS{CA: ours.PEM}, "", "any"},
				"secure port plainly": {good, nil, "source.addresses", "source.addresses"},
			}
			for name, tc := range cases {
				t.Run(name, func(t *testing.T) {
					src := source(c)
					src.Addresses, src.TLS = []string{tc.addr}, tc.tls
					for i := range c.Nodes {
						src.NodeMap[c.TCPAddrs()[i]] = tc.addr
					}
					_, err := tryOpen(t, src, limits)
					switch {
					case tc.key == "":
						if err != nil {
							t.Error(err)
						}
					case failure.ClassOf(err) != failure.Preflight, !strings.Contains(failure.Remedy(err), tc.remedy), tc.key != "any" && clickhouse.Key(err) != tc.key:
						t.Errorf("class %d at %s, %v, remedy %q; want %q at %s", failure.ClassOf(err), clickhouse.Key(err), err, failure.Remedy(err), tc.remedy, tc.key)
					case strings.Contains(err.Error(), "BEGIN"):
						t.Errorf("the error shows a file: %v", err)
					default:
						t.Logf("%v → %s", err, failure.Remedy(err))
					}
				})
			}
		})
	}
}

// A user without a password logs in over HTTPS as over any other way, and not
// by a certificate that the mover does not have.
func TestNoPasswordOverTLS(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		src := source(c)
		src.Username, src.Password = "default", ""
		var user string
		if err := open(t, src, limits).Nodes()[0].Row(t.Context(), clickhouse.Query{SQL: "SELECT currentUser()"}, &user); c.old {
			if err == nil || !strings.Contains(err.Error(), "currentUser") {
				t.Errorf("18.16 has no currentUser: %v", err)
			}
		} else if err != nil || user != "default" {
			t.Errorf("user %q: %v", user, err)
		}
	})
}
