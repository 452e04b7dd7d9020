package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// envMain makes the test binary be ck2hbase, for tests that need a process.
const envMain = "CK2HBASE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	// The tests wait for servers and for sleeping queries most of the time.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, c := range clusters {
		if c.Cluster != nil {
			c.end()
		}
	}
	os.Exit(code)
}

// A source is a cluster with the table of the tests in it.
type source struct {
	*lab.Cluster
	name  string
	get   func(testing.TB) (c *lab.Cluster, own bool)
	once  sync.Once
	err   error
	owned bool
}

// clusters are those the tests use; each is started, or attached to, on first use.
var (
	modern = &source{name: "26.9", get: func(t testing.TB) (*lab.Cluster, bool) { return lab.Shared(t).ClickHouse(t), false }}
	old    = &source{name: "18.16", get: func(t testing.TB) (*lab.Cluster, bool) { return lab.Shared(t).OldClickHouse(t), false }}
	// fragile may be broken, by one test at a time, and has users with traps
	// in their profiles.
	fragile = &source{name: "fragile", get: startFragile}
	// replicated have two replicas of each of two shards, see replicas_test.go.
	replicated = []*source{{name: "26.9", get: startReplicas(false)}, {name: "18.16", get: startReplicas(true)}}
	clusters   = append([]*source{modern, old, fragile}, replicated...)
)

// database holds the tables of this process on every cluster.
var database = fmt.Sprintf("ck2hbase_test_%d", time.Now().UnixNano())

const (
	// days is the number of days with rows, up to date; each has rowsPerDay.
	days       = 4
	rowsPerDay = 120
	date       = "2026-11-29"
)

// rowSQL makes the rows: 40 shops, five sources, NULL and what needs escapes among them.
const rowSQL = `toDate('` + date + `') - toUInt16(n % 4) AS dt, toUInt32(intDiv(n, 4) % 40) AS shop,
arrayElement(['app', '搜索', 'a|b/c%', '', NULL], (intDiv(n, 160) + intDiv(n, 4)) % 5 + 1) AS channel, toUInt32(n + 1) AS pv`

// slowSQL makes one row a part: one shop of 40 rows and 20 shops of one. At a
// second a row and part, see newSlowJob, the large shop takes long and the
// others are soon done.
const slowSQL = "SELECT toDate('" + date + "'), toUInt32(if(number < 40, 0, number - 39)), 'app', toUInt32(number) FROM numbers(60)"

// loaded gives the cluster with the tables of the tests over all shards.
func (s *source) loaded(t testing.TB) *source {
	t.Helper()
	s.once.Do(func() {
		s.Cluster, s.owned = s.get(t)
		s.err = s.load(context.WithoutCancel(t.Context()))
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s
}

func (s *source) load(ctx context.Context) error {
	for _, sql := range []string{
		"CREATE DATABASE " + database,
		"CREATE TABLE " + database + ".events_local (dt Date, shop UInt32, channel Nullable(String), pv UInt32) ENGINE = MergeTree PARTITION BY dt ORDER BY shop",
		"CREATE TABLE " + database + ".slow_local (dt Date, shop UInt32, channel Nullable(String), pv UInt32) ENGINE = MergeTree PARTITION BY (shop, pv) ORDER BY shop",
		"CREATE TABLE " + database + ".slow AS " + database + ".slow_local ENGINE = Distributed(" + lab.ClusterName + ", " + database + ", slow_local, rand())",
		"CREATE TABLE " + database + ".events AS " + database + ".events_local ENGINE = Distributed(" + lab.ClusterName + ", " + database + ", events_local, rand())",
		"CREATE VIEW " + database + ".events_view AS SELECT * FROM " + database + ".events_local",
	} {
		if err := s.ExecAll(ctx, sql); err != nil {
			return err
		}
	}
	shards := s.Shards()
	for _, n := range s.Nodes {
		sql := fmt.Sprintf("INSERT INTO %s.events_local SELECT %s FROM (SELECT number AS n FROM numbers(%d)) WHERE n %% %d = %d",
			database, strings.ReplaceAll(rowSQL, "\n", " "), days*rowsPerDay, shards, n.Shard-1)
		if err := n.Exec(ctx, sql); err != nil {
			return err
		}
		if err := n.Exec(ctx, "INSERT INTO "+database+".slow_local "+slowSQL); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := s.ExecAll(ctx, "DROP DATABASE IF EXISTS "+database)
	if s.owned {
		err = s.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "end of the tests:", err)
	}
}

// ask runs a query over HTTP and gives the lines of its result.
func (s *source) ask(t testing.TB, sql string) []string {
	t.Helper()
	out, err := s.Nodes[0].Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

// running lists the queries, of any node, whose text holds a word.
func (s *source) running(t testing.TB, word string) []string {
	t.Helper()
	var all []string
	for _, n := range s.Nodes {
		out, err := n.Query(t.Context(), "SELECT query_id, query FROM system.processes WHERE query LIKE '%"+word+"%' AND query NOT LIKE '%system.processes%'")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			all = append(all, n.Name+": "+strings.TrimSpace(line))
		}
	}
	return all
}

// jobText is the job that the tests change. NAME is also the table's.
const jobText = `name: NAME
source:
  addresses: [ADDRESSES]
  cluster: lab
  username: mover
  password: ${TEST_PASSWORD}
  table: DATABASE.events
  where: dt BETWEEN {start} AND {end} AND 'NAME' != ''
dimensions:
  - shop
  - {name: channel, expr: channel, null: {literal: "-none-"}}
metrics:
  pv: sum(pv)
  rows: {expr: count(), encode: text}
  newest: max(dt)
periods: [DAY]
sink:
  hbase:
    clusters:
      - zookeeper: ["QUORUM"]
    table: NAME
    row_key: "{lvl}|{shop}|{channel:esc}|{tp}|{date}"
`

// A testJob is a job file in a directory of its own.
type testJob struct {
	t          testing.TB
	source     *source
	name, path string
	env        map[string]string
	forbidden  []string
}

var names atomic.Int64

// newJob writes the job file after replacing texts in it, in pairs, and drops
// the table after the test.
func newJob(t testing.TB, s *source, replace ...string) *testJob {
	t.Helper()
	s.loaded(t)
	j := &testJob{t: t, source: s, name: fmt.Sprintf("t%d_%d", time.Now().UnixNano(), names.Add(1)),
		env: map[string]string{"TEST_PASSWORD": lab.MoverPassword}, forbidden: []string{lab.MoverPassword, lab.ReadonlyPassword}}
	text := jobText
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the job file has no %q", replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	text = strings.NewReplacer("NAME", j.name, "DATABASE", database, "ADDRESSES", strings.Join(s.TCPAddrs(), ", "),
		"QUORUM", quorum(t)).Replace(text)
	j.path = filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(j.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hb := hbaseClient(t)
	t.Cleanup(func() { dropTable(t, hb, j.name) })
	return j
}

// newSlowJob is a job with one slice that takes 20 seconds and 14 that take one.
func newSlowJob(t testing.TB, s *source, replace ...string) *testJob {
	t.Helper()
	return newJob(t, s, append([]string{"DATABASE.events", "DATABASE.slow", "metrics:\n", "scatter: {strategy: hash, slices: 15}\nmetrics:\n  slow: max(pv + sleepEachRow(1))\n"}, replace...)...)
}

// quick is what makes a slow job a quick one.
const quick = "metrics.slow=max(pv)"

func quorum(t testing.TB) string { return lab.Shared(t).HBase(t).Quorum() }

// hbaseClient connects as a reader would; it ends with the test.
func hbaseClient(t testing.TB) *hbase.Client {
	t.Helper()
	hb, err := hbase.Dial(t.Context(), job.HBaseCluster{Name: "test", ZooKeeper: []string{quorum(t)}, ZNode: "/hbase"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hb.Close)
	return hb
}

func dropTable(t testing.TB, hb *hbase.Client, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	table, err := hb.Table(ctx, name)
	if err != nil || table == nil {
		return
	}
	if !table.Enabled {
		err = hb.EnableTable(ctx, name)
	}
	if err == nil {
		err = hb.DropTable(ctx, name)
	}
	if err != nil {
		t.Logf("dropping %s: %v", name, err)
	}
}

// An outcome is what a command gave.
type outcome struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d after %v\nstdout:\n%s\nstderr:\n%s", o.code, o.took, o.stdout, o.stderr)
}

// locked is a buffer that may be read while a command writes to it.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// command runs ck2hbase in this process and checks that it told no secret.
// "JOB" stands for the path of the job file.
func (j *testJob) command(args ...string) outcome {
	j.t.Helper()
	return j.commandIn(j.t.Context(), new(locked), args...)
}

func (j *testJob) commandIn(ctx context.Context, stderr *locked, args ...string) outcome {
	j.t.Helper()
	args = append([]string{}, args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "JOB", j.path)
	}
	env := maps.Clone(j.env)
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	var stdout locked
	begin := time.Now()
	code := run(ctx, args, lookup, &stdout, stderr)
	o := outcome{code, stdout.String(), stderr.String(), time.Since(begin)}
	j.noSecrets(o)
	return o
}

func (j *testJob) noSecrets(o outcome) {
	j.t.Helper()
	for _, secret := range j.forbidden {
		if strings.Contains(o.stdout+o.stderr, secret) {
			j.t.Errorf("a password shows: %v", o)
		}
	}
}

// run runs the job for the date and wants an exit code.
func (j *testJob) run(code int, more ...string) outcome {
	j.t.Helper()
	o := j.command(append([]string{"run", "JOB", "--date", date}, more...)...)
	if o.code != code {
		j.t.Fatalf("want exit code %d: %v", code, o)
	}
	return o
}

// cells reads the job's table: qualifier and value by row key.
func (j *testJob) cells() map[string]map[string]string {
	j.t.Helper()
	all := map[string]map[string]string{}
	err := hbaseClient(j.t).ScanRows(j.t.Context(), j.name, nil, func(r hbase.Row) error {
		cells := map[string]string{}
		for _, c := range r.Cells {
			cells[c.Qualifier] = string(c.Value)
		}
		all[string(r.Key)] = cells
		return nil
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return all
}

// traces lists what a command left in HBase for the job: its table, and rows
// of the ledger.
func (j *testJob) traces() []string {
	j.t.Helper()
	hb := hbaseClient(j.t)
	var found []string
	table, err := hb.Table(j.t.Context(), j.name)
	if err == nil && table != nil {
		found = append(found, "the table "+j.name)
	}
	if err == nil {
		if table, err = hb.Table(j.t.Context(), ledger.Table); err == nil && table != nil {
			err = hb.ScanRows(j.t.Context(), ledger.Table, nil, func(r hbase.Row) error {
				if strings.Contains(string(r.Key), j.name) {
					found = append(found, "the ledger's row "+string(r.Key))
				}
				return nil
			})
		}
	}
	if err != nil {
		j.t.Fatal(err)
	}
	return found
}

// wait polls until ready returns true.
func wait(t testing.TB, what string, ready func() bool) {
	t.Helper()
	const patience = time.Minute
	for end := time.Now().Add(patience); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
