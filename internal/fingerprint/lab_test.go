package fingerprint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// A source is a database of a test's own on a real cluster, and a connection to it.
type source struct {
	*lab.Cluster
	t        *testing.T
	database string
	client   *clickhouse.Client
}

func onEach(t *testing.T, test func(t *testing.T, s *source)) {
	for name, cluster := range map[string]func(*lab.Lab, testing.TB) *lab.Cluster{"26.9": (*lab.Lab).ClickHouse, "18.16": (*lab.Lab).OldClickHouse} {
		t.Run(name, func(t *testing.T) {
			s := &source{Cluster: cluster(lab.Shared(t), t), t: t, database: fmt.Sprintf("fingerprint_%d", time.Now().UnixNano())}
			client, err := clickhouse.Open(t.Context(), s.job("x"), job.Limits{MaxExecutionTime: 10 * time.Second, MaxMemoryUsage: 1e9, MaxBytesBeforeExternalGroupBy: 5e8},
				2, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			s.client = client
			t.Cleanup(client.Close)
			s.all("CREATE DATABASE DB")
			t.Cleanup(func() { _ = s.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE "+s.database) })
			test(t, s)
		})
	}
}

func (s *source) job(table string) job.Source {
	return job.Source{Addresses: s.TCPAddrs(), Cluster: lab.ClusterName, Username: lab.MoverUser, Password: lab.MoverPassword, Table: s.database + "." + table}
}

// sql puts the name of the database in for DB.
func (s *source) sql(text string) string {
	return regexp.MustCompile(`\bDB\b`).ReplaceAllString(text, s.database)
}

func (s *source) all(text string) {
	s.t.Helper()
	if err := s.ExecAll(s.t.Context(), s.sql(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *source) first(text string) {
	s.t.Helper()
	if err := s.Nodes[0].Exec(s.t.Context(), s.sql(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *source) find(table string) *Table {
	s.t.Helper()
	t, err := Find(s.t.Context(), s.job(table), s.client.Nodes(), slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *source) take(table *Table) Fingerprint {
	s.t.Helper()
	f, err := table.Take(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// touched lists the partitions that changed, and those of them that a filter takes rows from.
func (s *source) touched(table *Table, before Fingerprint, where string) (changed, touched []string) {
	s.t.Helper()
	changes, complete := before.Compare(s.take(table))
	if !complete {
		s.t.Error("not all shards were compared")
	}
	hit, err := table.Touched(s.t.Context(), where, changes)
	if err != nil {
		s.t.Fatal(err)
	}
	names := func(all []Change) []string {
		var out []string
		for _, c := range all {
			if c.Shard != 1 {
				s.t.Errorf("a change of a node where nothing changed: %v", c)
			}
			out = append(out, c.Partition)
		}
		slices.Sort(out)
		return out
	}
	return names(changes), names(hit)
}

// What happens to a table, and what of it is a change.
func TestWhatChanges(t *testing.T) {
	const where = "dt = '2026-11-03' AND k < 100"
	onEach(t, func(t *testing.T, s *source) {
		for name, create := range map[string]string{
			"":        "ENGINE = MergeTree PARTITION BY dt ORDER BY k",
			"tuple":   "ENGINE = MergeTree PARTITION BY (dt, s) ORDER BY k",
			"monthly": "ENGINE = MergeTree(dt, k, 8192)",
		} {
			t.Run(name, func(t *testing.T) {
				s := &source{s.Cluster, t, s.database, s.client}
				if name == "monthly" && !s.Old {
					create += " SETTINGS allow_deprecated_syntax_for_merge_tree = 1"
				}
				l, d := "l"+name, "d"+name
				s.all("CREATE TABLE DB." + l + " (dt Date, k UInt32, s String) " + create)
				s.all("CREATE TABLE DB." + d + " AS DB." + l + " ENGINE = Distributed(" + lab.ClusterName + ", " + s.database + ", " + l + ", rand())")
				insert := func(dt string, k int) {
					s.t.Helper()
					s.first(fmt.Sprintf("INSERT INTO DB.%s SELECT toDate('%s'), toUInt32(%d), 'x' FROM numbers(10)", l, dt, k))
				}
				for range 3 {
					insert("2026-11-03", 1)
					insert("2026-11-04", 1)
					insert("2026-12-05", 1)
				}
				table := s.find(d)
				expect := func(what string, before Fingerprint, changed, touched int) {
					s.t.Helper()
					all, hit := s.touched(table, before, where)
					if len(all) != changed || len(hit) != touched {
						s.t.Errorf("%s: %q changed, of them %q touched; want %d and %d", what, all, hit, changed, touched)
					}
				}
				before := s.take(table)
				hash := before.Hash()
				s.first("OPTIMIZE TABLE DB." + l + " FINAL")
				expect("a merge", before, 0, 0)
				if s.take(table).Hash() != hash {
					s.t.Error("a merge changes the hash")
				}
				insert("2026-12-05", 1)
				expect("rows where the filter takes none", before, 1, 0)

				before = s.take(table)
				insert("2026-11-03", 1000)
				expect("rows that the filter does not take, in a partition of which it takes some", before, 1, 1)

				before = s.take(table)
				part := map[string]string{"": "'2026-11-03'", "tuple": "('2026-11-03', 'x')", "monthly": "202611"}[name]
				s.first("ALTER TABLE DB." + l + " DROP PARTITION " + part)
				expect("a partition that is gone", before, 1, 0)
				if changes, _ := before.Compare(s.take(table)); len(changes) != 1 || changes[0].After != (State{}) || changes[0].Before.Rows < 40 {
					s.t.Errorf("%+v", changes)
				}
				before = s.take(table)
				insert("2026-11-03", 1)
				expect("a new partition", before, 1, 1)
			})
		}
	})
}

// A mutation counts in all partitions that it goes over, also where it leaves
// the number of rows. That a merge takes it in is no change.
func TestMutations(t *testing.T) {
	onEach(t, func(t *testing.T, s *source) {
		for what, sql := range map[string]string{
			"update":             "ALTER TABLE DB.l UPDATE v = v + 1 WHERE k = 3",
			"delete":             "ALTER TABLE DB.l DELETE WHERE k = 3",
			"lightweight delete": "DELETE FROM DB.l WHERE k = 4",
			"lightweight update": "UPDATE DB.l SET v = v + 1 WHERE k = 3",
		} {
			create, with := "CREATE TABLE DB.l (dt Date, k UInt32, v UInt32) ENGINE = MergeTree PARTITION BY dt ORDER BY k", ""
			if s.Old && what != "delete" {
				continue // there is no other yet
			}
			if !s.Old {
				create += " SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1"
				with = " SETTINGS mutations_sync = 2, allow_experimental_lightweight_update = 1"
			}
			t.Run(what, func(t *testing.T) {
				s := &source{s.Cluster, t, s.database, s.client}
				s.all(create)
				defer s.all("DROP TABLE DB.l")
				insert := "INSERT INTO DB.l SELECT toDate('%s'), toUInt32(number), 1 FROM numbers(10)"
				for range 2 {
					s.first(fmt.Sprintf(insert, "2026-11-03"))
				}
				table := s.find("l")
				before := s.take(table)
				s.first(sql + with)
				for end := time.Now().Add(time.Minute); s.take(table).Hash() == before.Hash(); time.Sleep(20 * time.Millisecond) {
					if time.Now().After(end) { // 18.16 does not wait for a mutation
						t.Fatal("nothing changed")
					}
				}
				if changed, touched := s.touched(table, before, "k = 5"); len(changed) != 1 || len(touched) != 1 {
					t.Errorf("%q changed, %q touched", changed, touched)
				}
				if what == "lightweight delete" {
					return // a merge drops the rows, which counts, see the package
				}
				for end := time.Now().Add(time.Minute); s.mutations("NOT is_done") != "0\n"; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("the mutation does not end")
					}
				}
				before = s.take(table)
				s.first("OPTIMIZE TABLE DB.l FINAL")
				if changed, _ := s.touched(table, before, ""); len(changed) != 0 {
					t.Errorf("a merge changed %q", changed)
				}
			})
		}
	})
}

// mutations counts the mutations of the table l under a condition.
func (s *source) mutations(condition string) string {
	s.t.Helper()
	out, err := s.Nodes[0].Query(s.t.Context(), "SELECT count() FROM system.mutations WHERE database = '"+s.database+"' AND "+condition)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// The table itself is looked at where there is no Distributed one.
func TestLocalTable(t *testing.T) {
	onEach(t, func(t *testing.T, s *source) {
		s.all("CREATE TABLE DB.l (dt Date, k UInt32) ENGINE = MergeTree ORDER BY k")
		s.first("INSERT INTO DB.l SELECT toDate('2026-11-03'), toUInt32(number) FROM numbers(10)")
		f := s.take(s.find("l"))
		want := map[string]State{"all": {Rows: 10, Block: 1}}
		if f.Table != s.database+".l" || len(f.Nodes) != s.Shards() || !cmp.Equal(f.Nodes[0].Partitions, want) || len(f.Nodes[1].Partitions) != 0 {
			t.Errorf("%+v", f)
		}
	})
}

// What has no parts, or shows none, is told apart from what does not change.
func TestNone(t *testing.T) {
	onEach(t, func(t *testing.T, s *source) {
		s.all("CREATE TABLE DB.l (dt Date, k UInt32) ENGINE = MergeTree ORDER BY k")
		s.all("CREATE VIEW DB.v AS SELECT * FROM DB.l")
		s.all("CREATE TABLE DB.m (dt Date, k UInt32) ENGINE = Memory")
		s.all("CREATE TABLE DB.dm AS DB.m ENGINE = Distributed(lab, " + s.database + ", m)")
		s.all("CREATE TABLE DB.dv AS DB.m ENGINE = Distributed(lab, " + s.database + ", v)")
		s.all("CREATE TABLE DB.absent AS DB.m ENGINE = Distributed(lab, " + s.database + ", nothing)")
		for _, table := range []string{"v", "m", "dm", "dv", "absent", "nothing"} {
			if _, err := Find(t.Context(), s.job(table), s.client.Nodes(), slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNone) {
				t.Errorf("%s: %v", table, err)
			} else {
				t.Log(err)
			}
		}
		src := s.job("d")
		s.all("CREATE TABLE DB.d AS DB.l ENGINE = Distributed(lab, " + s.database + ", l)")
		src.Cluster = "another"
		if _, err := Find(t.Context(), src, s.client.Nodes(), slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNone) {
			t.Errorf("another cluster: %v", err)
		}
	})
}
