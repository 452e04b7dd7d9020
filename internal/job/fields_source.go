package job

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

func (d *decoder) sourceFields(s *Source) []field {
	secure := &TLS{}
	return append([]field{
		{key: "addresses", typ: "list of host:port", required: true,
			// Which port is the default is only known when the other keys are read.
			read: func(n *node) {
				d.after = append(d.after, func() { d.addresses(&s.Addresses, s.defaultPort())(n) })
			},
			doc: "Nodes to connect to first; any one that answers is enough, the rest comes from `system.clusters`. Without a port: 9000 (`native`), 9440 (`native` with `tls`), 8123 (`http`), 8443 (`http` with `tls`). An item may hold several, separated by commas."},
		{key: "protocol", typ: "text", def: "`native`", read: d.protocol(&s.Protocol),
			doc: "`native` or `http`. `http` needs a server that counts the rows of a result in `X-ClickHouse-Summary` (22.8 and later; 18.16 is native only). The server keeps a query's whole result, in about 1 MB of memory and then in its temporary files, until it is complete, and sends nothing before: a load balancer in between must wait for as long as `limits.max_execution_time`."},
		{key: "tls", typ: "mapping", def: "off", fields: d.tlsFields(secure), read: d.tls(s, secure),
			doc: "Present, as in `tls: {}`: connections are encrypted and the servers' certificates checked."},
		{key: "cluster", typ: "text", required: true, read: d.textField(&s.Cluster, checkPlain),
			doc: "A cluster's name in `system.clusters`."},
		{key: "username", typ: "text", def: "`default`", read: d.textField(&s.Username, checkPlain),
			doc: "Logs in on every node."},
		{key: "password", typ: "text", def: "empty", read: d.password,
			doc: "Better `${NAME}`, or `password_file`. Shown nowhere."},
		{key: "password_file", typ: "text", def: "none", read: d.passwordFile,
			doc: "A file that holds the password, relative to the job file; one newline at its end is left out. Not together with `password`."},
		{key: "node_map", typ: "mapping of texts", def: "empty", read: d.nodeMap(&s.NodeMap),
			doc: "Replaces a host, or host:port, of `system.clusters` by another where its name does not resolve here. `system.clusters` holds ports of the native protocol without TLS only: with `protocol: http` or `tls` all nodes are reached at the port of `addresses`, which must then be one, unless they are given another here."},
		{key: "table", typ: "text", required: true, read: d.textField(&s.Table, checkSourceTable),
			doc: "`table` or `database.table`: a Distributed table that is the same on every node; in a cluster of one shard, any table."},
		{key: "where", typ: "SQL", def: "no filter", read: d.where(&s.Where),
			doc: "A filter. `{start}`, `{end}`, `{date}` and `{tp}` are replaced; see below."},
		{key: "on_change", typ: "text", def: "`warn`", read: d.onChange(s),
			doc: "What to do when the source's parts changed during a run, in partitions that the filter takes rows from; merges are no change. `warn`: publish, and say so. `fail`: do not publish (exit code 8). `rerun_changed_partitions`: gather the levels and periods that it concerns again, up to three times."},
	}, later("sql", "settings", "database", "final", "sample")...)
}

func (d *decoder) password(n *node) {
	s, ok := d.text(n)
	if !ok {
		return
	}
	d.job.Source.Password = Secret(s)
	d.secrets = append(d.secrets, Secret(s))
}

func (d *decoder) passwordFile(n *node) {
	path, ok := d.nonEmpty(n)
	if !ok {
		return
	}
	d.after = append(d.after, func() {
		if len(d.secrets) > 0 {
			d.report(n.at, "keep one of the two", "%s: there is a password already", name(n))
		}
	})
	text, ok := d.file(n, path)
	if !ok {
		return
	}
	s := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	d.job.Source.Password = Secret(s)
}

// file reads a file that the job file names.
func (d *decoder) file(n *node, path string) ([]byte, bool) {
	if d.opts.ReadFile == nil {
		d.report(n.at, "", "%s: files cannot be read here", name(n))
		return nil, false
	}
	text, err := d.opts.ReadFile(path)
	if err != nil {
		d.report(n.at, "the path is relative to the job file", "%s: %v", name(n), err)
		return nil, false
	}
	return text, true
}

// defaultPort is that of an address without one.
func (s *Source) defaultPort() string {
	switch {
	case s.Protocol == HTTP && s.TLS != nil:
		return "8443"
	case s.Protocol == HTTP:
		return "8123"
	case s.TLS != nil:
		return "9440"
	}
	return "9000"
}

func (d *decoder) protocol(dst *Protocol) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, []string{string(Native), string(HTTP)}, nil); ok {
			*dst = Protocol(s)
		}
	}
}

func (d *decoder) tlsFields(t *TLS) []field {
	return []field{
		{key: "ca_file", typ: "text", def: "the machine's authorities", read: d.contents(func(b []byte) { t.CA = b }),
			doc: "Certificates (PEM) of the authorities that have signed the servers' certificates, instead of the machine's. Relative to the job file, as the others."},
		{key: "cert_file", typ: "text", def: "none", read: d.contents(func(b []byte) { t.Cert = b }),
			doc: "A certificate (PEM) to show to the servers. With `protocol: http` and no password it is the login, too."},
		{key: "key_file", typ: "text", def: "none", read: d.contents(func(b []byte) { t.Key = Secret(b) }),
			doc: "Its private key (PEM, not encrypted)."},
		{key: "server_name", typ: "text", def: "the host that is dialled", read: d.textField(&t.ServerName, checkServerName),
			doc: "The name that all servers' certificates must hold, where they are reached by another."},
	}
}

func (d *decoder) tls(s *Source, t *TLS) func(*node) {
	fields := d.tlsFields(t)
	return func(n *node) {
		s.TLS = t
		d.mapping(n, fields)
		d.checkTLS(t)
	}
}

// contents reads a file whose path is the value.
func (d *decoder) contents(take func([]byte)) func(*node) {
	return func(n *node) {
		path, ok := d.nonEmpty(n)
		if !ok {
			return
		}
		if text, ok := d.file(n, path); ok {
			take(text)
		}
	}
}

// checkTLS finds at once what would fail at the first connection. Its
// messages hold nothing of the files.
func (d *decoder) checkTLS(t *TLS) {
	if t.CA != nil && !x509.NewCertPool().AppendCertsFromPEM(t.CA) {
		d.atPath("source.tls.ca_file", "give a file of certificates that begin with -----BEGIN CERTIFICATE-----", "source.tls.ca_file: the file holds no certificate in PEM")
	}
	switch {
	case t.Cert == nil && t.Key == "":
	case t.Cert == nil:
		d.atPath("source.tls.key_file", "add cert_file", "source.tls.key_file: a key without its certificate")
	case t.Key == "":
		d.atPath("source.tls.cert_file", "add key_file", "source.tls.cert_file: a certificate without its key")
	default:
		if _, err := tls.X509KeyPair(t.Cert, []byte(t.Key)); err != nil {
			d.atPath("source.tls.cert_file", "cert_file and key_file are a certificate and its unencrypted private key, in PEM",
				"source.tls.cert_file and key_file cannot be used: %v", err)
		}
	}
}

func checkServerName(s string) error {
	if !isHost(s) {
		return errors.New("not a host's name or address")
	}
	return nil
}
