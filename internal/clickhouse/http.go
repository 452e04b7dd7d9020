package clickhouse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// A proof holds what the server says about the result of one query, against
// which the rows that arrive are counted: in the native protocol the profile
// that follows the rows, over HTTP the summary that goes before them.
type proof struct {
	rows     atomic.Pointer[uint64]
	progress func(rows, bytes uint64) // may be nil
}

func (p *proof) profile(info *ch.ProfileInfo) {
	rows := info.Rows
	p.rows.Store(&rows)
}

// summary is X-ClickHouse-Summary. All its numbers are texts, and some servers
// leave out those that are 0.
type summary struct {
	ReadRows   string `json:"read_rows"`
	ReadBytes  string `json:"read_bytes"`
	ResultRows string `json:"result_rows"`
}

// answer takes the header of an answer. What it does not hold is not proven.
func (p *proof) answer(h http.Header) {
	p.rows.Store(nil)
	var s summary
	if err := json.Unmarshal([]byte(h.Get("X-ClickHouse-Summary")), &s); err != nil {
		return
	}
	rows, err := strconv.ParseUint(cmp.Or(s.ResultRows, "0"), 10, 64)
	if err != nil {
		return
	}
	p.rows.Store(&rows)
	readRows, err1 := strconv.ParseUint(cmp.Or(s.ReadRows, "0"), 10, 64)
	readBytes, err2 := strconv.ParseUint(cmp.Or(s.ReadBytes, "0"), 10, 64)
	if p.progress != nil && err1 == nil && err2 == nil {
		p.progress(readRows, readBytes)
	}
}

type proofKey struct{}

// withProof says where the answers to requests under ctx are noted; nil means
// nowhere.
func withProof(ctx context.Context, p *proof) context.Context {
	return context.WithValue(ctx, proofKey{}, p)
}

var errRedirect = errors.New("the answer is a redirection, which is not followed")

// A transport sends the driver's requests and notes what their answers say
// about the result.
type transport struct {
	base http.RoundTripper
	// certificate says that the user may log in by a certificate.
	certificate bool
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if !t.certificate {
		// Without a password the driver asks for a login by certificate.
		req.Header.Del("X-ClickHouse-SSL-Certificate-Auth")
	}
	// The driver can read each method, and a user that is readonly=1 can choose none.
	params := req.URL.Query()
	params.Del("network_compression_method")
	req.URL.RawQuery = params.Encode()
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		// The login would go to whatever place the answer names.
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: status %d", errRedirect, resp.StatusCode)
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("X-ClickHouse-Exception-Code") != "" {
		resp.StatusCode = http.StatusInternalServerError // for the driver to read the exception
	}
	if p, _ := req.Context().Value(proofKey{}).(*proof); p != nil {
		p.answer(resp.Header)
	}
	return resp, nil
}

// CloseIdleConnections is called when the driver closes a connection.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
