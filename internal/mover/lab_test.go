package mover_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/mover"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// A server is one of the two ClickHouse versions with both data sets loaded.
type server struct {
	name    string
	cluster func(*lab.Lab, testing.TB) *lab.Cluster
	once    sync.Once
	err     error
}

// trafficRows is enough for every shop size and for each of the ten sources.
const trafficRows = 120_000

// database holds the data sets; they are the same for all tests.
const database = "mover_test"

var servers = []*server{
	{name: "26.9", cluster: (*lab.Lab).ClickHouse},
	{name: "18.16", cluster: (*lab.Lab).OldClickHouse},
}

func (s *server) loaded(t *testing.T) *lab.Cluster {
	t.Helper()
	c := s.cluster(lab.Shared(t), t)
	s.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		if s.err = lab.LoadFlights(ctx, c, database); s.err == nil {
			s.err = lab.LoadTraffic(ctx, c, database, lab.TrafficOptions{Rows: trafficRows})
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return c
}

// onEach runs a test against both versions with the data loaded.
func onEach(t *testing.T, test func(t *testing.T, c *lab.Cluster)) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) { test(t, s.loaded(t)) })
	}
}

// unique gives a name for a table that no other test has.
func unique(t *testing.T, base string) string {
	t.Helper()
	return fmt.Sprintf("%s_%d", base, time.Now().UnixNano())
}

// env gives the variables of the example jobs.
func env(t *testing.T, c *lab.Cluster) func(string) (string, bool) {
	t.Helper()
	vars := map[string]string{
		"CK2HBASE_CLICKHOUSE":          strings.Join(c.TCPAddrs(), ","),
		"CK2HBASE_CLUSTER":             lab.ClusterName,
		"CK2HBASE_CLICKHOUSE_USER":     lab.MoverUser,
		"CK2HBASE_CLICKHOUSE_PASSWORD": lab.MoverPassword,
		"CK2HBASE_ZOOKEEPER":           lab.Shared(t).HBase(t).Quorum(),
	}
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// load reads a job file with a table of its own, and drops the table after the test.
func load(t *testing.T, c *lab.Cluster, path string, overrides ...string) *job.Job {
	t.Helper()
	table := unique(t, "t")
	overrides = append([]string{"name=" + table, "sink.hbase.table=" + table}, overrides...)
	j, err := job.Load(path, job.Options{LookupEnv: env(t, c), Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// loadWithoutSalt is load for the traffic example without its salt.
func loadWithoutSalt(t *testing.T, c *lab.Cluster, overrides ...string) *job.Job {
	t.Helper()
	text, err := os.ReadFile("../../examples/traffic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "traffic.yaml")
	if err := os.WriteFile(path, regexp.MustCompile("(?m)^ +salt: .*$").ReplaceAll(text, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, c, path, overrides...)
}

func client(t *testing.T, j *job.Job) *hbase.Client {
	t.Helper()
	hb, err := hbase.Dial(t.Context(), j.HBase.Clusters[0], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hb.Close)
	return hb
}

// logTo writes the log of a run to the test's output.
func logTo(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// newMover prepares a run.
func newMover(t *testing.T, j *job.Job, date string) *mover.Mover {
	t.Helper()
	d, err := job.ParseDate(date)
	if err != nil {
		t.Fatal(err)
	}
	return &mover.Mover{Job: j, Date: d, Log: logTo(t), Progress: new(report.Progress)}
}

// run runs a job and drops its table after the test.
func run(t *testing.T, j *job.Job, date string) (*report.Result, error) {
	t.Helper()
	dropAfter(t, j)
	return newMover(t, j, date).Run(t.Context())
}

func dropAfter(t *testing.T, j *job.Job) {
	t.Helper()
	hb := client(t, j)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if table, err := hb.Table(ctx, j.HBase.Table); err == nil && table != nil {
			if err := hb.DropTable(ctx, j.HBase.Table); err != nil {
				t.Logf("dropping %s: %v", j.HBase.Table, err)
			}
		}
	})
}

// tableOf reads a whole table: key to qualifier to value.
func tableOf(t *testing.T, j *job.Job) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	err := client(t, j).ScanRows(t.Context(), j.HBase.Table, nil, func(r hbase.Row) error {
		cells := map[string]string{}
		for _, c := range r.Cells {
			if c.Family != j.HBase.Family {
				t.Errorf("row %q has a cell of family %q", r.Key, c.Family)
			}
			cells[c.Qualifier] = string(c.Value)
		}
		all[string(r.Key)] = cells
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ask runs an unsliced query over HTTP, which shares no code with the mover,
// and gives the fields of its rows.
func ask(t *testing.T, c *lab.Cluster, sql string) [][]string {
	t.Helper()
	out, err := c.Nodes[0].Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}
