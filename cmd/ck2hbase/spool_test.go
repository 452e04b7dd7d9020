package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// blobs is a source whose result is larger than what the mover keeps in memory
// and what the network holds: one row a shop, with text that does not compress, and NULLs that
// take memory but make no cells.
const blobs, blobRows = "blobs", 320_000

func (s *source) blobTable(t *testing.T) string {
	t.Helper()
	s.loaded(t)
	name := fmt.Sprintf("%s.%s_%d", database, blobs, names.Add(1))
	var pieces []string
	for i := range 24 {
		pieces = append(pieces, fmt.Sprintf("reinterpretAsString(cityHash64(number, %d))", i))
	}
	for _, sql := range []string{
		"CREATE TABLE " + name + "_local (dt Date, shop UInt32, blob String) ENGINE = MergeTree ORDER BY shop",
		"CREATE TABLE " + name + " AS " + name + "_local ENGINE = Distributed(lab, " + strings.Replace(name, ".", ", ", 1) + "_local)",
	} {
		if err := s.ExecAll(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range s.Nodes {
		sql := fmt.Sprintf("INSERT INTO %s_local SELECT toDate('%s'), toUInt32(number), concat(%s) FROM numbers(%d) WHERE number %% %d = %d",
			name, date, strings.Join(pieces, ", "), blobRows, len(s.Nodes), i)
		if err := n.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// noSpool is a spool that takes nothing.
const noSpool = "{max_bytes: 0}"

// slowSink is a job whose HBase takes several times the time limit to take the
// rows, unless it is healed: not longer, for a server that waits notices its limit
// only between two blocks.
func slowSink(t *testing.T, s *source, limit, spool string) (*testJob, regionServers) {
	t.Helper()
	servers := proxyHBase(t)
	var nulls strings.Builder
	for i := range 8 {
		fmt.Fprintf(&nulls, "  n%d: max(nullIf(shop, shop))\n", i)
	}
	j := newJob(t, s, "DATABASE.events", s.blobTable(t), "  - {name: channel, expr: channel, null: {literal: \"-none-\"}}\n", "", "|{channel:esc}", "",
		"  pv: sum(pv)\n  rows: {expr: count(), encode: text}\n  newest: max(dt)\n", "  blob: any(blob)\n"+nulls.String(),
		"periods:", "limits: {max_execution_time: "+limit+"}\nscatter: {strategy: hash, slices: 1}\nspool: "+spool+"\nperiods:",
		"[\"QUORUM\"]\n", "[\"QUORUM\"]\n        node_map: "+servers.nodeMap()+"\n")
	rate := int64(1500)
	if spool != noSpool {
		rate = 200 // slow for a slow machine, too; it is healed before the end
	}
	for _, proxy := range servers {
		proxy.Bandwidth(lab.ToServer, rate)
	}
	return j, servers
}

func (r regionServers) heal() {
	for _, proxy := range r {
		proxy.Heal()
	}
}

// background runs a command; what it writes to standard error can be read meanwhile.
func (j *testJob) background(ctx context.Context, args ...string) (stderr *locked, done chan outcome) {
	stderr, done = new(locked), make(chan outcome, 1)
	go func() { done <- j.commandIn(ctx, stderr, args...) }()
	return stderr, done
}

// A sink that is much slower than ClickHouse costs a query its time limit
// without a spool, and nothing with one: the query is done and gone while its
// rows wait on disk.
func TestSlowSink(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name+"/without a spool", func(t *testing.T) {
			t.Parallel() // it mostly waits
			j, _ := slowSink(t, s, "15s", noSpool)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stderr, done := j.background(ctx, "run", "JOB", "--date", date)
			wait(t, "a slice that hit the time limit", func() bool {
				return strings.Contains(stderr.String(), "a slice hit a limit and is cut") && strings.Contains(stderr.String(), "code 159")
			})
			cancel()
			<-done
		})
		t.Run(s.name+"/with a spool", func(t *testing.T) {
			dir := t.TempDir()
			j, servers := slowSink(t, s, "600s", "{dir: "+dir+", max_bytes: 1GB}")
			stderr, done := j.background(t.Context(), "run", "JOB", "--date", date, "--json")
			wait(t, "rows that wait on disk", func() bool { return strings.Contains(stderr.String(), "rows wait on disk") })
			wait(t, "the end of the query", func() bool { return len(j.queries()) == 0 })
			if n := j.rowsInHBase(); n == blobRows {
				t.Error("the sink was not slow: all rows are there when the query ends")
			}
			servers.heal()
			o := <-done
			var r result
			if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != 0 {
				t.Fatalf("%v: %v", err, o)
			}
			if r.Units[0].Splits != 0 || r.Totals.SourceRetries != 0 || r.Totals.SpooledBytes == 0 {
				t.Errorf("%v", o)
			}
			j.exactBlobs()
			nothingIn(t, dir)
		})
	}
}

func (j *testJob) rowsInHBase() (n int) {
	j.t.Helper()
	if err := hbaseClient(j.t).ScanRows(j.t.Context(), j.name, nil, func(hbase.Row) error { n++; return nil }); err != nil {
		j.t.Fatal(err)
	}
	return n
}

// exactBlobs compares all rows with those of the source.
func (j *testJob) exactBlobs() {
	j.t.Helper()
	got := map[string]string{}
	err := hbaseClient(j.t).ScanRows(j.t.Context(), j.name, nil, func(r hbase.Row) error {
		value, _ := r.Value("f", "blob")
		got[string(r.Key)] = fmt.Sprintf("%X", value)
		return nil
	})
	if err != nil {
		j.t.Fatal(err)
	}
	table := strings.TrimPrefix(strings.Fields(j.text("  table: "))[1], "table:")
	wrong := 0
	lines := j.source.ask(j.t, "SELECT shop, hex(blob) FROM "+table)
	for _, line := range lines {
		shop, blob, _ := strings.Cut(line, "\t")
		if got["1|"+shop+"|DAY|"+date] != blob {
			wrong++
		}
	}
	if len(lines) != blobRows || len(got) != blobRows || wrong > 0 {
		j.t.Errorf("%d rows in HBase, %d in ClickHouse, %d of them wrong", len(got), len(lines), wrong)
	}
}

// text is the first line of the job file that begins so.
func (j *testJob) text(begin string) string {
	j.t.Helper()
	all, err := os.ReadFile(j.path)
	if err != nil {
		j.t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	j.t.Fatalf("the job file has no line %q", begin)
	return ""
}

// result is what the tests read of a report.
type result struct {
	State string
	Since, Until,
	Timestamp int64
	Units []struct {
		Level, Period string
		Splits        int
		Since, Until  int64
	}
	Totals struct {
		SourceRetries int64 `json:"source_retries"`
		SpooledBytes  int64 `json:"spooled_bytes"`
	}
}

// nothingIn wants no file in a directory, and none of it open in this process,
// removed ones included.
func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if open := openIn(t, "self", dir); len(open) > 0 {
		t.Errorf("still open: %q", open)
	}
}

// openIn lists the files below a directory that a process has open, removed ones included.
func openIn(t *testing.T, pid, dir string) []string {
	t.Helper()
	var open []string
	links, err := filepath.Glob("/proc/" + pid + "/fd/*")
	if err != nil || len(links) == 0 {
		t.Fatalf("no open files of process %s: %v", pid, err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			open = append(open, target)
		}
	}
	return open
}

// Nothing of a spool stays behind when its run does not come to its end.
func TestSpoolOfARunThatEnds(t *testing.T) {
	t.Parallel()
	spooling := func(t *testing.T) (dir string, j *testJob) {
		dir = t.TempDir()
		j, _ = slowSink(t, modern, "600s", "{dir: "+dir+", max_bytes: 1GB}")
		return dir, j
	}
	t.Run("interrupted", func(t *testing.T) {
		dir, j := spooling(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stderr, done := j.background(ctx, "run", "JOB", "--date", date)
		wait(t, "rows that wait on disk", func() bool { return strings.Contains(stderr.String(), "rows wait on disk") })
		if len(openIn(t, "self", dir)) == 0 {
			t.Error("there is no spool file")
		}
		cancel()
		if o := <-done; o.code != 8 {
			t.Errorf("%v", o)
		}
		nothingIn(t, dir)
	})
	t.Run("killed", func(t *testing.T) {
		dir, j := spooling(t)
		p := j.start("run", "JOB", "--date", date)
		wait(t, "rows that wait on disk", func() bool { return strings.Contains(p.stderr.String(), "rows wait on disk") })
		p.signal(syscall.SIGKILL)
		p.wait()
		nothingIn(t, dir)
	})
	t.Run("a disk that is full", func(t *testing.T) {
		dir := t.TempDir()
		j, servers := slowSink(t, modern, "600s", "{dir: "+dir+", max_bytes: 5MB}")
		stderr, done := j.background(t.Context(), "run", "JOB", "--date", date)
		wait(t, "a spool that is full", func() bool { return strings.Contains(stderr.String(), "the spool is full") })
		servers.heal()
		if o := <-done; o.code != 0 {
			t.Errorf("%v", o)
		}
		j.exactBlobs()
		nothingIn(t, dir)
	})
}

// What the job file says of the spool must be so.
func TestWrongSpool(t *testing.T) {
	t.Parallel()
	for _, w := range []wrong{
		{name: "absent", replace: []string{"periods:", "spool: {dir: /no/such/directory}\nperiods:"}, code: 3, says: []string{"JOB:16:14: ", "/no/such/directory", "no such file", "→ name a directory"}},
		{name: "relative", replace: []string{"periods:", "spool: {dir: tmp}\nperiods:"}, code: 2, says: []string{"JOB:16:14: ", "absolute path"}},
		{name: "no room", replace: []string{"periods:", "spool: {max_bytes: 1000000TB}\nperiods:"}, code: 3, says: []string{"JOB:16:20: ", "bytes free", "→ name a directory"}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}
