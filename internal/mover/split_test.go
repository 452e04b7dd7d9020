package mover_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// statesTable has groups whose states are large: k and s make 4,000 groups of
// distinct users, and with them one value of k, 'heavy', holds the given percentage
// of the rows, in its ten groups or in one of them.
func statesTable(t *testing.T, c *lab.Cluster, rows, heavy int, groups string) string {
	t.Helper()
	db := unique(t, "states")
	exec := func(sql string) {
		if err := c.ExecAll(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE " + db)
	t.Cleanup(func() { _ = c.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE "+db) })
	exec("CREATE TABLE " + db + ".l (dt Date, k String, s UInt8, u UInt64) ENGINE = MergeTree ORDER BY k")
	exec("CREATE TABLE " + db + ".t AS " + db + ".l ENGINE = Distributed(" + lab.ClusterName + ", " + db + ", l)")
	for i, n := range c.Nodes {
		sql := fmt.Sprintf(`INSERT INTO %s.l SELECT toDate('2026-11-29'), if(sipHash64(n) %% 100 < %d, 'heavy', concat('k', toString(sipHash64(n, 1) %% 400))) AS k, if(k = 'heavy', %s, sipHash64(n, 2) %% 10), sipHash64(n, 3)
			FROM (SELECT number * %d + %d AS n FROM system.numbers LIMIT %d)`, db, heavy, groups, len(c.Nodes), i, rows/len(c.Nodes))
		if err := n.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return db + ".t"
}

func statesTruth(t *testing.T, c *lab.Cluster, table string) map[string]map[string]string {
	t.Helper()
	truth := map[string]map[string]string{}
	for _, r := range ask(t, c, "SELECT k, s, uniqExact(u), count() FROM "+table+" GROUP BY k, s") {
		truth[r[0]+"|"+r[1]+"|2026-11-29"] = map[string]string{"u": long(t, r[2]), "n": long(t, r[3])}
	}
	return truth
}

// A memory limit under which one query always fails, and every slice of the
// plan too, is met by cutting the slices: the result is exact all the same, and the
// report says what was cut.
func TestSlicesThatHitALimitAreCut(t *testing.T) {
	for name, heavy := range map[string]int{"even": 0, "one value has 60 % of the rows": 60} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c *lab.Cluster) {
				table := statesTable(t, c, 600_000, heavy, "sipHash64(n, 2) % 10")
				limit := tightLimit(t, c, table)
				result, j := cutRun(t, c, limit, "source.table="+table)
				if u := result.Units[0]; u.Splits == 0 || u.Slices != 1+u.Splits {
					t.Errorf("%d slices, %d of them by cutting: the limit of %d bytes was not hit", u.Slices, u.Splits, limit)
				}
				equal(t, statesTruth(t, c, table), tableOf(t, j))
			})
		})
	}
}

// cutRun runs the job in one slice under the memory limit, and under lower ones
// until it is cut: what the whole query takes varies from one time to the next.
func cutRun(t *testing.T, c *lab.Cluster, limit int, settings ...string) (*report.Result, *job.Job) {
	t.Helper()
	for try := 0; ; try++ {
		j := load(t, c, "testdata/states.yaml", append(append(memory(limit), "scatter.slices=1"), settings...)...)
		result, err := run(t, j, "2026-11-29")
		if err != nil {
			t.Fatal(err)
		}
		if result.Units[0].Splits > 0 || try == 2 {
			return result, j
		}
		limit = limit * 3 / 4
	}
}

// memory sets a limit that a query does not avoid by spilling.
func memory(limit int) []string {
	return []string{"limits.max_memory_usage=" + strconv.Itoa(limit), "limits.max_bytes_before_external_group_by=" + strconv.Itoa(limit-1)}
}

// tightLimit finds a limit that the query as one does not survive.
func tightLimit(t *testing.T, c *lab.Cluster, table string) int {
	t.Helper()
	for limit := 1 << 30; limit > 1<<20; limit = limit * 3 / 4 {
		_, err := c.Nodes[0].Query(t.Context(), fmt.Sprintf(
			"SELECT count(), sum(x) FROM (SELECT k, s, uniqExact(toString(u)) AS x FROM %s GROUP BY k, s) SETTINGS max_memory_usage = %d", table, limit))
		if err != nil {
			return limit
		}
	}
	t.Fatal("the query fits any limit")
	return 0
}

// A single group that is over the limit cannot be cut: the run fails, names
// the group, and publishes nothing.
func TestAGroupOverTheLimitIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		table := statesTable(t, c, 1_200_000, 90, "3")
		j := load(t, c, "testdata/states.yaml", "source.table="+table, "limits.max_memory_usage=20000000")
		begin := time.Now()
		_, err := run(t, j, "2026-11-29")
		if failure.ClassOf(err) != failure.Source || !strings.Contains(err.Error(), "k = heavy, s = 3") {
			t.Errorf("after %v: class %d, %v", time.Since(begin), failure.ClassOf(err), err)
		}
	})
}

// A limit that half of the slices hit, since the values in their buckets have
// large states, is met by cutting those and no others.
func TestHalfOfTheSlicesHitTheLimit(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		const slices, rows = 4, 1_500_000
		db := unique(t, "half")
		for _, sql := range []string{
			"CREATE DATABASE " + db,
			"CREATE TABLE " + db + ".l (dt Date, k String, s UInt8, u UInt64) ENGINE = MergeTree ORDER BY k",
			"CREATE TABLE " + db + ".t AS " + db + ".l ENGINE = Distributed(" + lab.ClusterName + ", " + db + ", l)",
			fmt.Sprintf(`INSERT INTO %s.l SELECT toDate('2026-11-29'), concat('k', toString(n %% 400)) AS k, sipHash64(n, 2) %% 10, if(cityHash64(k) %% 65536 < 32768, sipHash64(n, 3), n %% 3)
				FROM (SELECT number AS n FROM system.numbers LIMIT %d)`, db, rows/len(c.Nodes)),
		} {
			if err := c.ExecAll(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = c.ExecAll(context.WithoutCancel(t.Context()), "DROP DATABASE "+db) })
		table := db + ".t"
		j := load(t, c, "testdata/states.yaml", append(memory(halfLimit(t, c, table)), "source.table="+table, "scatter.strategy=hash",
			"scatter.slices="+strconv.Itoa(slices), "metrics.u=length(groupUniqArray(toString(u)))")...)
		log := new(strings.Builder)
		m := newMover(t, j, "2026-11-29")
		m.Log = slog.New(slog.NewTextHandler(log, nil))
		dropAfter(t, j)
		result, err := m.Run(t.Context())
		if err != nil {
			t.Fatalf("%v; %d rows are there; %+v %s", err, len(tableOf(t, j)), result.Totals, log)
		}
		cut := map[string]bool{}
		for _, found := range regexp.MustCompile(`is cut".* slice=(\d+) `).FindAllStringSubmatch(log.String(), -1) {
			cut[found[1]] = true
		}
		if u := result.Units[0]; len(cut) == slices || u.Splits < len(cut) || u.Slices != slices+u.Splits {
			t.Errorf("%d slices were cut, the report has %d, %d of them by cutting: %s", len(cut), u.Slices, u.Splits, log)
		}
		t.Logf("cut: %v, splits %d", cut, result.Units[0].Splits)
		equal(t, statesTruth(t, c, table), tableOf(t, j))
	})
}

// halfLimit finds a limit that is too low for a slice of large states, and not
// for one of small ones.
func halfLimit(t *testing.T, c *lab.Cluster, table string) int {
	t.Helper()
	fits := func(lo, hi, limit int) bool {
		_, err := c.Nodes[0].Query(t.Context(), fmt.Sprintf("SELECT count(), sum(x) FROM (SELECT k, s, length(groupUniqArray(toString(u))) AS x FROM %s WHERE cityHash64(k) %% 65536 BETWEEN %d AND %d GROUP BY k, s) SETTINGS max_memory_usage = %d", table, lo, hi, limit))
		return err == nil
	}
	for limit := 1 << 27; limit > 1<<20; limit = limit * 3 / 4 {
		if !fits(0, 16383, limit) {
			if !fits(32768, 49151, limit) {
				t.Fatalf("%d bytes are too few for any slice", limit)
			}
			return limit
		}
	}
	t.Fatal("the slices fit any limit")
	return 0
}
