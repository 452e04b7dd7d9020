package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A wrong is one wrong input and what the user is told about it.
type wrong struct {
	name    string
	replace []string // in the job file, in pairs
	args    []string // absent: run JOB --date …
	code    int
	says    []string // on standard error
	// prepare may change the job or its surroundings.
	prepare func(t *testing.T, j *testJob)
	// left is what there was before and must still be.
	left []string
}

// within is the time for the answer to any wrong input.
const within = 15 * time.Second

func (w wrong) test(t *testing.T, s *source) {
	j := newJob(t, s, w.replace...)
	if w.prepare != nil {
		w.prepare(t, j)
	}
	args := w.args
	if args == nil {
		args = []string{"run", "JOB", "--date", date}
	}
	o := j.command(args...)
	if o.code != w.code {
		t.Errorf("want exit code %d: %v", w.code, o)
	}
	if o.took > within {
		t.Errorf("it took %v", o.took)
	}
	for _, text := range w.says {
		if text = strings.ReplaceAll(text, "JOB", j.path); !strings.Contains(o.stderr, text) {
			t.Errorf("the message has no %q: %v", text, o)
		}
	}
	if n := strings.Count(o.stderr, "ck2hbase: "); n != 1 {
		t.Errorf("there are %d messages instead of one: %v", n, o)
	}
	if strings.Contains(o.stderr, "goroutine") || strings.Contains(o.stderr, "\tat org.apache") || strings.Contains(o.stderr, "Stack trace") {
		t.Errorf("a stack trace is no message: %v", o)
	}
	if left := j.traces(); fmt.Sprint(left) != strings.ReplaceAll(fmt.Sprint(w.left), "NAME", j.name) {
		t.Errorf("it left %v", left)
	}
	if w.code != 0 && o.stdout != "" {
		t.Errorf("nothing was done, and yet there is a result: %v", o)
	}
	t.Logf("%s", o.stderr)
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, w := range []wrong{
		{name: "unknown command", args: []string{"rum", "JOB"}, code: 2, says: []string{`unknown command "rum"`, "run", "--help"}},
		{name: "no job file", args: []string{"run", "--date", date}, code: 2, says: []string{"arg", "→ see ck2hbase run --help"}},
		{name: "two job files", args: []string{"run", "JOB", "JOB", "--date", date}, code: 2, says: []string{"arg", "→ see ck2hbase run --help"}},
		{name: "unknown flag", args: []string{"run", "JOB", "--dates", date}, code: 2, says: []string{"unknown flag: --dates", "→ see ck2hbase run --help"}},
		{name: "no date", args: []string{"run", "JOB"}, code: 2, says: []string{"date is missing", "→ give the business date"}},
		{name: "plan without a date", args: []string{"plan", "JOB"}, code: 2, says: []string{"date is missing", "→ give the business date"}},
		{name: "a day that is none", args: []string{"run", "JOB", "--date", "2026-02-30"}, code: 2, says: []string{"2026-02-30", "→ give the business date as --date 2026-11-29"}},
		{name: "not a date", args: []string{"run", "JOB", "--date", "yesterday"}, code: 2, says: []string{"yesterday", "→ give the business date as"}},
		{name: "scan with values", args: []string{"scan", "JOB", "shop=3"}, code: 2, says: []string{"→ see ck2hbase scan --help"}},
		{name: "get without values", args: []string{"get", "JOB"}, code: 2, says: []string{"→ see ck2hbase get --help"}},
		{name: "version of something", args: []string{"version", "JOB"}, code: 2, says: []string{"→ see ck2hbase version --help"}},
		{name: "bad log format", args: []string{"run", "JOB", "--date", date, "--log-format", "xml"}, code: 2, says: []string{`"xml"`, "→ use --log-format text, json or auto"}},
		{name: "bad override", args: []string{"run", "JOB", "--date", date, "--config-override", "limits"}, code: 2, says: []string{"--config-override:1:1", "→ write key.path=value"}},
		{name: "unknown key in override", args: []string{"run", "JOB", "--date", date, "--config-override", "limits.max_time=3s"}, code: 2, says: []string{"--config-override:1:1", "max_time", "→"}},
		{name: "password in a wrong override", args: []string{"run", "JOB", "--date", date, "--config-override", "source.pasword=mover-secret"}, code: 2, says: []string{"--config-override:1:1", "did you mean \"password\""}},
		{name: "password in an override of the wrong type", args: []string{"run", "JOB", "--date", date, "--config-override", "source.password=[mover-secret]"}, code: 2, says: []string{"--config-override:1:"}},
		{name: "missing file", args: []string{"run", "/nowhere/job.yaml", "--date", date}, code: 2, says: []string{"/nowhere/job.yaml", "no such file", "→ give the path of a job file"}},
		{name: "a directory", args: []string{"run", "/tmp", "--date", date}, code: 2, says: []string{"/tmp", "is a directory"}},
		{name: "unreadable metrics address", args: []string{"run", "JOB", "--date", date, "--metrics-listen", "9090"}, code: 2, says: []string{"--metrics-listen 9090", "→ write host:port"}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}

func TestWrongMetricsAddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := listener.Addr().String()
	wrong{args: []string{"run", "JOB", "--date", date, "--metrics-listen", at}, code: 2,
		says: []string{"--metrics-listen " + at + ": ", "address already in use", "→ another program listens there"}}.test(t, modern)
}

func TestWrongJobFile(t *testing.T) {
	t.Parallel()
	for _, w := range []wrong{
		{name: "bad YAML", replace: []string{"periods: [DAY]", "periods: [DAY"}, code: 2, says: []string{"JOB:"}},
		{name: "unknown key", replace: []string{"periods:", "period:"}, code: 2, says: []string{"JOB:16:1: ", "period: [DAY]", "^~", "periods"}},
		{name: "key of a later version", replace: []string{"periods: [DAY]", "sweep: true"}, code: 2, says: []string{"JOB:16:1: ", "not supported yet"}},
		{name: "missing variable", code: 2, says: []string{"JOB:6:13: ", "TEST_PASSWORD", "→"},
			prepare: func(_ *testing.T, j *testJob) { delete(j.env, "TEST_PASSWORD") }},
		{name: "no such period", replace: []string{"[DAY]", "[DAILY]"}, code: 2, says: []string{"JOB:16:11: ", "DAILY", "→ known: DAY"}},
		{name: "empty", code: 2, says: []string{"JOB"}, prepare: func(t *testing.T, j *testJob) {
			if err := os.WriteFile(j.path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "no password file", replace: []string{"password: ${TEST_PASSWORD}", "password_file: secret/absent"}, code: 2, says: []string{"JOB:6:18: ", "no such file"}},
		{name: "a password where an address goes", replace: []string{"[ADDRESSES]", `["tcp://mover:mover-secret@ck1:9000"]`}, code: 2, says: []string{"JOB:3:16: ", "not a URL"}},
		{name: "a password that is not YAML", replace: []string{"password: ${TEST_PASSWORD}", "password: [mover-secret"}, code: 2, says: []string{"JOB:"}},
		{name: "a literal password beside a mistake", replace: []string{"password: ${TEST_PASSWORD}", "password: mover-secret extra: [}"}, code: 2, says: []string{"JOB:"}},
		{name: "SQL that reaches out", replace: []string{"sum(pv)", "sum(pv)) FROM x --"}, code: 2, says: []string{"JOB:13:"}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}

func TestWrongRowKey(t *testing.T) {
	t.Parallel()
	const key = `"{lvl}|{shop}|{channel:esc}|{tp}|{date}"`
	for _, w := range []wrong{
		{name: "ambiguous", replace: []string{key, `"{lvl}|{shop}{channel:esc}|{tp}|{date}"`}, code: 2, says: []string{"JOB:22:15: ", "row_key: ", "^~", "→"}},
		{name: "unescaped separator", replace: []string{key, `"{lvl}|{channel}|{shop}|{tp}|{date}"`, "expr: channel", "expr: channel", "- shop\n", "- {name: shop, expr: toString(shop)}\n"}, code: 2, says: []string{"JOB:22:15: ", "channel", "→"}},
		{name: "unknown field", replace: []string{key, `"{lvl}|{shop}|{chanel:esc}|{tp}|{date}"`}, code: 2, says: []string{"JOB:22:15: ", "chanel", "channel"}},
		{name: "missing dimension", replace: []string{key, `"{lvl}|{shop}|{tp}|{date}"`}, code: 2, says: []string{"JOB:22:15: ", "channel"}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}

// What only ClickHouse can know is shown at its place in the job file, too.
func TestWrongSource(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		for _, w := range []wrong{
			{name: "metric", replace: []string{"sum(pv)", "sum(pvv)"}, code: 3, says: []string{"JOB:13:7: ", "pvv", "pv: sum(pvv)", "^~", "→"}},
			{name: "metric in a mapping", replace: []string{"count()", "counts()"}, code: 3, says: []string{"JOB:14:16: ", "counts", "→"}},
			{name: "dimension", replace: []string{"expr: channel", "expr: chanel"}, code: 3, says: []string{"JOB:11:27: ", "chanel", "→"}},
			{name: "plain dimension", replace: []string{"- shop\n", "- shops\n", "{shop}", "{shops}"}, code: 3, says: []string{"JOB:10:5: ", "shops", "→"}},
			{name: "where", replace: []string{"where: dt BETWEEN", "where: dtt BETWEEN"}, code: 3, says: []string{"JOB:8:10: ", "dtt", "→"}},
			{name: "table", replace: []string{"DATABASE.events", "DATABASE.event"}, code: 3, says: []string{"JOB:7:10: ", "event", "→"}},
			{name: "database", replace: []string{"DATABASE.events", "no_such_db.events"}, code: 3, says: []string{"JOB:7:10: ", "no_such_db", "→"}},
			{name: "local table", replace: []string{"DATABASE.events", "DATABASE.events_local"}, code: 3, says: []string{"JOB:7:10: ", "MergeTree", "→ name a Distributed table"}},
			{name: "view", replace: []string{"DATABASE.events", "DATABASE.events_view"}, code: 3, says: []string{"JOB:7:10: ", "View", "→ name a Distributed table"}},
			{name: "no aggregate", replace: []string{"sum(pv)", "pv"}, code: 3, says: []string{"JOB:13:7: ", "→"}},
			{name: "not SQL", replace: []string{"sum(pv)", "sum(pv +)"}, code: 3, says: []string{"JOB:13:7: "}},
			{name: "array", replace: []string{"sum(pv)", "groupArray(pv)"}, code: 3, says: []string{"JOB:13:7: ", "Array(UInt32)", "wrap the expression"}},
			{name: "int64 of a text", replace: []string{"sum(pv)", "{expr: any(channel), encode: int64}"}, code: 2, says: []string{"JOB:13:36: ", "int64", "String", "→"}},
			{name: "unknown cluster", replace: []string{"cluster: lab", "cluster: lob"}, code: 3, says: []string{"JOB:4:12: ", "lob", "→ set source.cluster to one of: ", "lab"}},
			{name: "wrong password", code: 3, says: []string{"JOB:6:13: ", "→ check source.username and source.password"}, prepare: func(_ *testing.T, j *testJob) {
				j.env["TEST_PASSWORD"] = "open-sesame"
				j.forbidden = append(j.forbidden, "open-sesame")
			}},
			{name: "unknown user", replace: []string{"username: mover", "username: remover"}, code: 3, says: []string{"JOB:", "→ check source.username and source.password"}},
			{name: "readonly user", replace: []string{"username: mover", "username: readonly"}, code: 3, says: []string{"JOB:5:13: ", "→ ", "readonly=2"},
				prepare: func(_ *testing.T, j *testJob) { j.env["TEST_PASSWORD"] = "readonly-secret" }},
		} {
			t.Run(s.name+"/"+w.name, func(t *testing.T) { t.Parallel(); w.test(t, s) })
		}
	}
}

// closed gives an address that nobody listens on.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	mute, _ := hole(t)
	nobody := closed(t)
	for _, w := range []wrong{
		{name: "no ClickHouse", replace: []string{"ADDRESSES", nobody}, code: 3, says: []string{"JOB:3:", nobody, "connection refused", "→ check source.addresses"}},
		{name: "silent ClickHouse", replace: []string{"ADDRESSES", mute}, code: 3, says: []string{"JOB:3:", mute, "→ check source.addresses"}},
		{name: "HTTP port of ClickHouse", replace: []string{"ADDRESSES", modern.loaded(t).Nodes[0].HTTPAddr()}, code: 3, says: []string{"JOB:3:", "→ check source.addresses", "9000"}},
		{name: "ClickHouse that does not resolve", replace: []string{"ADDRESSES", "no-such-host.invalid:9000"}, code: 3, says: []string{"no-such-host.invalid", "→ check source.addresses"}},
		{name: "no ZooKeeper", replace: []string{"QUORUM", nobody}, code: 3, says: []string{"JOB:20:", nobody, "→ check zookeeper:"}},
		{name: "silent ZooKeeper", replace: []string{"QUORUM", mute}, code: 3, says: []string{"JOB:20:", mute, "→ check zookeeper:"}},
		{name: "ZooKeeper that does not resolve", replace: []string{"QUORUM", "no-such-host.invalid:2181"}, code: 3, says: []string{"no-such-host.invalid", "→ check zookeeper:"}},
		{name: "wrong znode", replace: []string{`["QUORUM"]`, "[\"QUORUM\"]\n        znode: /hbase-unsecure"}, code: 3, says: []string{"JOB:20:", "/hbase-unsecure", "there is one under /hbase"}},
		{name: "unresolved node of the cluster", replace: []string{"cluster: lab", "cluster: lab\n  node_map: {127.0.0.1: no-such-host.invalid}"}, code: 3, says: []string{"JOB:5:13: ", "no-such-host.invalid", "→", "source.node_map"}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}

func TestWrongTable(t *testing.T) {
	t.Parallel()
	for _, w := range []wrong{
		{name: "family", code: 3, says: []string{"JOB:", `has no family "f"`, "→ its families: other"}, left: []string{"the table NAME"},
			prepare: func(t *testing.T, j *testJob) { makeTable(t, j, "other", 2) }},
		{name: "one version", code: 3, says: []string{"JOB:21:12: ", "keeps 1 version", "VERSIONS => 2"}, left: []string{"the table NAME"},
			prepare: func(t *testing.T, j *testJob) { makeTable(t, j, "f", 1) }},
		{name: "disabled", code: 3, says: []string{"JOB:21:12: ", "is disabled", "→ enable it"}, left: []string{"the table NAME"},
			prepare: func(t *testing.T, j *testJob) {
				makeTable(t, j, "f", 2)
				if err := hbaseClient(t).DisableTable(t.Context(), j.name); err != nil {
					t.Fatal(err)
				}
			}},
	} {
		t.Run(w.name, func(t *testing.T) { t.Parallel(); w.test(t, modern) })
	}
}

func makeTable(t *testing.T, j *testJob, family string, versions int) {
	t.Helper()
	spec := hbase.TableSpec{Name: j.name, Family: family, Create: job.Create{Compression: "NONE", Versions: versions}}
	if err := hbaseClient(t).CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// An output that nobody can write to is an error and not a silent success; but
// a run that was published says so by its exit code all the same.
func TestWrongOutput(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	full, err := os.OpenFile(filepath.Join("/dev", "full"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{
		{"plan", j.path, "--date", date}, {"plan", j.path, "--date", date, "--json"}, {"version"}, {"run", j.path, "--date", date},
	} {
		var stderr locked
		code := run(context.WithoutCancel(t.Context()), args, func(n string) (string, bool) { v, ok := j.env[n]; return v, ok }, full, &stderr)
		if (code == 0) != (args[0] == "run") || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}
