package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// exceptionTail finds the exception that a server appended to a result it had
// begun to send under status 200: 18.16 in its own words, modern servers also
// behind a marker.
var exceptionTail = regexp.MustCompile(`(?m)(?:^Code: \d+(?:\.|, e\.displayText\(\) =) DB::.*|^__exception__)`)

// tailBytes bounds how far from the end an appended exception is looked for.
const tailBytes = 16 << 10

// Query runs a statement over HTTP as the default user and returns the result
// as tab-separated text. It shares no code with the mover, so tests can check
// the mover with it. A result that ends in an exception is an error whatever
// the status was; so a result whose last lines are such texts (of query_log,
// say) cannot be read with it.
func (n *Node) Query(ctx context.Context, sql string) (string, error) {
	// wait_end_of_query makes the server know how the query ended before it
	// sends the status.
	b, err := n.post(ctx, url.Values{"wait_end_of_query": {"1"}}, strings.NewReader(sql))
	if err != nil {
		return "", fmt.Errorf("%s: %w\nin: %s", n.Name, err, abbreviate(sql))
	}
	return string(b), nil
}

// Exec runs a statement that returns nothing of interest.
func (n *Node) Exec(ctx context.Context, sql string) error {
	_, err := n.Query(ctx, sql)
	return err
}

// Insert sends data to an INSERT statement that ends in its FORMAT.
func (n *Node) Insert(ctx context.Context, sql string, data io.Reader) error {
	if _, err := n.post(ctx, url.Values{"query": {sql}}, data); err != nil {
		return fmt.Errorf("%s: %w\nin: %s", n.Name, err, abbreviate(sql))
	}
	return nil
}

func (n *Node) post(ctx context.Context, params url.Values, body io.Reader) ([]byte, error) {
	u := url.URL{Scheme: "http", Host: n.HTTPAddr(), Path: "/", RawQuery: params.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), body)
	if err != nil {
		return nil, err
	}
	// One connection a request: a server that is killed and restarted on the
	// same port would otherwise meet a stale one.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("result was cut off: %w", err)
	}
	if code := resp.Header.Get("X-ClickHouse-Exception-Code"); resp.StatusCode != http.StatusOK || code != "" {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(out))
	}
	if at := exceptionTail.FindIndex(out[max(0, len(out)-tailBytes):]); at != nil {
		return nil, fmt.Errorf("status 200 with an exception: %s", bytes.TrimSpace(out[max(0, len(out)-tailBytes)+at[0]:]))
	}
	return out, nil
}

func abbreviate(sql string) string {
	if len(sql) > 500 {
		return sql[:500] + "…"
	}
	return sql
}

// StopListen closes a port of a 26.9 node while the server goes on: new
// connections are refused. protocol is "TCP" or "HTTP". 18.16 cannot do it.
func (n *Node) StopListen(ctx context.Context, protocol string) error {
	return n.listen(ctx, "STOP", protocol)
}

// StartListen opens again what StopListen closed.
func (n *Node) StartListen(ctx context.Context, protocol string) error {
	return n.listen(ctx, "START", protocol)
}

func (n *Node) listen(ctx context.Context, verb, protocol string) error {
	what := fmt.Sprintf("SYSTEM %s LISTEN %s", verb, protocol)
	switch {
	case n.shared:
		return fmt.Errorf("%s: %s: %w", n.Name, what, ErrShared)
	case n.old:
		return fmt.Errorf("%s: %s: %w", n.Name, what, ErrUnsupported)
	}
	return n.Exec(ctx, what)
}
