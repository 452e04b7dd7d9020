package clickhouse

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
)

// classifyWay is for what happened on the way to the server and back.
func classifyWay(err error) (Kind, string) {
	if remedy := tlsRemedy(err); remedy != "" {
		return KindPermanent, remedy
	}
	if h, ok := errors.AsType[*ch.HTTPError](err); ok {
		return classifyStatus(h.StatusCode)
	}
	_, unsupported := errors.AsType[*column.UnsupportedColumnTypeError](err)
	switch {
	case unsupported:
		return KindPermanent, "convert it within the expression: toString(…), toFloat64(…), finalizeAggregation(…)"
	case errors.Is(err, errOldHTTP), errors.Is(err, errNoSummary):
		return KindPermanent, remedyNative
	case errors.Is(err, errRedirect):
		return KindPermanent, "give the address of the server itself in source.addresses or source.node_map"
	}
	// What is left is a connection that could not be made, was cut, or brought
	// what no server sends.
	return KindElsewhere, ""
}

// classifyStatus is for an HTTP answer that is not ClickHouse's own: it has no
// exception's code.
func classifyStatus(status int) (Kind, string) {
	switch {
	case status == http.StatusTooManyRequests:
		return KindLater, ""
	case status >= 500, status == http.StatusRequestTimeout:
		return KindElsewhere, ""
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return KindPermanent, remedyLogin
	}
	return KindPermanent, "check that source.addresses are those of ClickHouse's HTTP interface, with source.tls if it is HTTPS"
}

// tlsRemedy is empty for an error that has nothing to do with TLS.
func tlsRemedy(err error) string {
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is not for the name that was dialled: set source.tls.server_name to a name that it holds (" +
			strings.Join(append(slices.Clone(e.Certificate.DNSNames), ipNames(e.Certificate)...), ", ") + ")"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "give the certificate of the authority that signed the server's in source.tls.ca_file"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not valid: replace it"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the port does not speak TLS: give the secure port in source.addresses, or remove source.tls"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // so crypto/tls reports alerts
		return "the server refused the TLS connection: it may want source.tls.cert_file and key_file, or other ones"
	}
	return ""
}

func ipNames(c *x509.Certificate) []string {
	names := make([]string, len(c.IPAddresses))
	for i, ip := range c.IPAddresses {
		names[i] = ip.String()
	}
	return names
}
