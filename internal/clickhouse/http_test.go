package clickhouse_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

var overHTTP = way{protocol: job.HTTP}

// A tamperer stands between the mover and the server, as a load balancer does.
type tamperer struct {
	*httptest.Server

	// change alters answers while it is set.
	change atomic.Pointer[func(*http.Response)]
}

// tamper puts a tamperer in front of a node and leads the source through it.
func tamper(t *testing.T, c *target, src *job.Source) *tamperer {
	t.Helper()
	p := &tamperer{}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: c.addrs[0]}) },
		ModifyResponse: func(r *http.Response) error {
			if change := p.change.Load(); change != nil {
				(*change)(r)
			}
			return nil
		},
	})
	t.Cleanup(p.Close)
	src.Addresses = []string{strings.TrimPrefix(p.URL, "http://")}
	src.NodeMap = map[string]string{c.TCPAddrs()[0]: src.Addresses[0], c.TCPAddrs()[1]: c.addrs[1], c.TCPAddrs()[2]: c.addrs[2]}
	return p
}

func setBody(r *http.Response, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.TransferEncoding = nil
}

// P3 over HTTP: a body that was cut is no end, wherever it was cut and however
// well the answer closes.
func TestCutBodyIsNoEnd(t *testing.T) {
	c := over(t, shared(t, false), overHTTP)
	src := source(c)
	proxy := tamper(t, c, &src)
	n := open(t, src, limits).Nodes()[0]
	const sql = "SELECT number, sipHash64(number) FROM (SELECT number FROM system.numbers LIMIT 200000)"
	var whole []byte
	capture := func(r *http.Response) {
		whole, _ = io.ReadAll(r.Body)
		setBody(r, whole)
	}
	proxy.change.Store(&capture)
	if err := drainQuery(t.Context(), n, sql); err != nil {
		t.Fatal(err)
	}
	cuts := []int{0, 1, 25, len(whole) / 2, len(whole) - 1}
	for at := 0; at < len(whole); { // 16 bytes of checksum, then the method and the frame's length
		cuts = append(cuts, at)
		at += 16 + int(binary.LittleEndian.Uint32(whole[at+17:]))
	}
	for _, cut := range cuts {
		change := func(r *http.Response) { setBody(r, whole[:cut]) }
		proxy.change.Store(&change)
		if err := drainQuery(t.Context(), n, sql); !failure.IsTransient(err) {
			t.Errorf("cut at %d of %d: class %d, %v", cut, len(whole), failure.ClassOf(err), err)
		}
	}
}

// What a load balancer, or a server that is not ClickHouse, answers.
func TestForeignAnswers(t *testing.T) {
	c := over(t, shared(t, false), overHTTP)
	status := func(code int, body string) func(*http.Response) {
		return func(r *http.Response) {
			r.StatusCode, r.Status = code, ""
			r.Header = http.Header{"Location": {"http://127.0.0.1:1/"}}
			setBody(r, []byte(body))
		}
	}
	const page = "<html><body>Bad gateway</body></html>"
	cases := map[string]struct {
		change func(*http.Response)
		kind   clickhouse.Kind
		class  failure.Class
		want   string
		remedy string
	}{
		"bad gateway":       {status(502, page), clickhouse.KindElsewhere, failure.Transient, "HTTP status 502", ""},
		"unavailable":       {status(503, ""), clickhouse.KindElsewhere, failure.Transient, "HTTP status 503", ""},
		"gateway timeout":   {status(504, page), clickhouse.KindElsewhere, failure.Transient, "HTTP status 504", ""},
		"too many requests": {status(429, ""), clickhouse.KindLater, failure.Transient, "HTTP status 429", ""},
		"no login":          {status(401, ""), clickhouse.KindPermanent, failure.Source, "HTTP status 401", "source.password"},
		"not found":         {status(404, page), clickhouse.KindPermanent, failure.Source, "HTTP status 404", "HTTP interface"},
		"redirection":       {status(307, ""), clickhouse.KindPermanent, failure.Source, "redirection", "source.addresses"},
		"a page":            {func(r *http.Response) { setBody(r, []byte(strings.Repeat(page, 99))) }, clickhouse.KindElsewhere, failure.Transient, "block decode", ""},
		"one row too few": {func(r *http.Response) {
			h := r.Header.Get("X-ClickHouse-Summary")
			r.Header.Set("X-ClickHouse-Summary", strings.Replace(h, `"result_rows":"3"`, `"result_rows":"4"`, 1))
		}, clickhouse.KindPermanent, failure.Transient, "the server sent 4 rows and 3 arrived", ""},
		"no summary": {func(r *http.Response) { r.Header.Del("X-ClickHouse-Summary") }, clickhouse.KindPermanent, failure.Transient, "without the server's row count", ""},
		"an exception under 200": {func(r *http.Response) {
			r.Header.Set("X-ClickHouse-Exception-Code", "241")
			setBody(r, []byte("Code: 241. DB::Exception: Memory limit exceeded"))
		}, clickhouse.KindLimit, failure.Source, "code 241", "limit"},
	}
	src := source(c)
	proxy := tamper(t, c, &src)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			proxy.change.Store(nil)
			n := open(t, src, limits).Nodes()[0]
			proxy.change.Store(&tc.change)
			err := drainQuery(t.Context(), n, "SELECT number FROM (SELECT number FROM system.numbers LIMIT 3)")
			if clickhouse.KindOf(err) != tc.kind || failure.ClassOf(err) != tc.class || !strings.Contains(fmt.Sprint(err), tc.want) || !strings.Contains(failure.Remedy(err), tc.remedy) {
				t.Errorf("kind %d, class %d, %v, remedy %q; want %d, %d, %q, %q",
					clickhouse.KindOf(err), failure.ClassOf(err), err, failure.Remedy(err), tc.kind, tc.class, tc.want, tc.remedy)
			}
			for _, secret := range []string{src.Username + ":", string(src.Password), "max_execution_time"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error shows %q: %v", secret, err)
				}
			}
		})
	}
}

// A server whose answers cannot be proven is refused before the run, and the
// user is told of the other protocol.
func TestHTTPRefused(t *testing.T) {
	refused := func(t *testing.T, src job.Source, want string) {
		t.Helper()
		_, err := tryOpen(t, src, limits)
		if failure.ClassOf(err) != failure.Preflight || !strings.Contains(fmt.Sprint(err), want) ||
			!strings.Contains(failure.Remedy(err), "source.protocol: native") || clickhouse.Key(err) != "source.protocol" {
			t.Errorf("class %d at %s, %v, remedy %q; want %q", failure.ClassOf(err), clickhouse.Key(err), err, failure.Remedy(err), want)
		}
	}
	t.Run("18.16", func(t *testing.T) {
		refused(t, source(over(t, shared(t, true), way{old: true, protocol: job.HTTP})), "too old for HTTP")
	})
	for name, header := range map[string]string{
		"taken out":     "",
		"before 22.8":   `{"read_rows":"1","read_bytes":"1","written_rows":"0","written_bytes":"0","total_rows_to_read":"1"}`,
		"another thing": "rows: 1",
	} {
		t.Run("summary "+name, func(t *testing.T) {
			c := over(t, shared(t, false), overHTTP)
			src := source(c)
			change := func(r *http.Response) { r.Header.Set("X-ClickHouse-Summary", header) }
			tamper(t, c, &src).change.Store(&change)
			refused(t, src, "X-ClickHouse-Summary")
		})
	}
	t.Run("zeros left out", func(t *testing.T) { // as some servers of 2025 do
		c := over(t, shared(t, false), overHTTP)
		src := source(c)
		change := func(r *http.Response) {
			h := r.Header.Get("X-ClickHouse-Summary")
			r.Header.Set("X-ClickHouse-Summary", strings.ReplaceAll(h, `,"result_rows":"0"`, ""))
		}
		tamper(t, c, &src).change.Store(&change)
		if err := drainQuery(t.Context(), open(t, src, limits).Nodes()[0], "SELECT number FROM system.numbers WHERE 0"); err != nil {
			t.Error(err)
		}
	})
	t.Run("the native port", func(t *testing.T) {
		c := over(t, shared(t, false), overHTTP)
		src := source(c)
		src.Addresses = c.TCPAddrs()[:1]
		_, err := tryOpen(t, src, limits)
		if failure.ClassOf(err) != failure.Preflight || !strings.Contains(failure.Remedy(err), "source.addresses") {
			t.Errorf("class %d, %v, remedy %q", failure.ClassOf(err), err, failure.Remedy(err))
		}
	})
}

// system.clusters does not know the ports of HTTP and of TLS.
func TestPortsOfTheOtherNodes(t *testing.T) {
	c := over(t, shared(t, false), overHTTP)
	src := source(c)
	addresses := func(nodeMap map[string]string) []string {
		src.NodeMap = nodeMap
		var got []string
		for _, n := range open(t, src, limits).Nodes() {
			got = append(got, n.Addr)
		}
		return got
	}
	_, port, _ := strings.Cut(c.addrs[0], ":")
	// Every node of the lab has the same host.
	if diff := cmp.Diff([]string{c.addrs[0], c.addrs[0], c.addrs[0]}, addresses(nil)); diff != "" {
		t.Errorf("the port of source.addresses: %s", diff)
	}
	got := addresses(map[string]string{"127.0.0.1": "localhost", c.TCPAddrs()[1]: c.addrs[1]})
	if diff := cmp.Diff([]string{"localhost:" + port, c.addrs[1], "localhost:" + port}, got); diff != "" {
		t.Errorf("with a node map: %s", diff)
	}
	src.Addresses = c.addrs
	src.NodeMap = map[string]string{c.TCPAddrs()[0]: c.addrs[0], c.TCPAddrs()[1]: c.addrs[1]}
	_, err := tryOpen(t, src, limits)
	if failure.ClassOf(err) != failure.Preflight || !strings.Contains(fmt.Sprint(err), c.TCPAddrs()[2]) || !strings.Contains(failure.Remedy(err), "source.node_map") {
		t.Errorf("several ports: %v, remedy %q", err, failure.Remedy(err))
	}
}

// Over every way a result of many blocks arrives whole, an empty one has its
// columns, and an exception after millions of rows is no end.
func TestResultsOfAnySize(t *testing.T) {
	onEach(t, func(t *testing.T, c *target) {
		n := open(t, source(c), limits).Nodes()[0]
		const rows = 1_500_000
		var read atomic.Uint64
		sql := fmt.Sprintf("SELECT number AS n, sipHash64(number) AS h, count() AS c FROM (SELECT number FROM system.numbers LIMIT %d) GROUP BY n, h", rows)
		s, err := n.Stream(t.Context(), clickhouse.Query{ID: queryID(t), SQL: sql, CountLast: true, Progress: func(rows, _ uint64) { read.Add(rows) }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var got, sum uint64
		for more := true; more; {
			b := &row.Batch{Width: 2}
			if more, err = s.Next(b, 4096); err != nil {
				t.Fatal(err)
			}
			for i := range b.Len() {
				sum += b.Values[2*i].Num
			}
			got += uint64(b.Len())
		}
		if got != rows || s.Counted != rows || sum != rows*(rows-1)/2 {
			t.Errorf("%d rows of %d source rows with the sum %d arrived, want %d and %d", got, s.Counted, sum, rows, rows*(rows-1)/2)
		}
		if read.Load() < rows {
			t.Errorf("progress told of %d rows, want at least %d", read.Load(), rows)
		}

		empty, err := n.Stream(t.Context(), clickhouse.Query{ID: queryID(t), SQL: strings.Replace(sql, "GROUP BY", "WHERE 0 GROUP BY", 1), CountLast: true})
		if err != nil {
			t.Fatal(err)
		}
		defer empty.Close()
		if diff := cmp.Diff(s.Columns, empty.Columns); diff != "" {
			t.Errorf("columns of an empty result: %s", diff)
		}
		if more, err := empty.Next(&row.Batch{Width: 2}, 1); more || err != nil {
			t.Errorf("an empty result: more %v, %v", more, err)
		}

		err = drainQuery(t.Context(), n, "SELECT number, sipHash64(number), throwIf(number = 1400000) FROM (SELECT number FROM system.numbers LIMIT 1500000)")
		if err == nil || !strings.Contains(err.Error(), "code 395") {
			t.Errorf("a late exception: %v", err)
		}
	})
}
