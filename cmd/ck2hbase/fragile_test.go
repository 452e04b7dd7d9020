package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// traps are settings of users' profiles that would change results without a
// word, by user.
var traps = map[string]string{
	"extremes":   "<extremes>1</extremes>",
	"any":        "<max_rows_to_group_by>3</max_rows_to_group_by><group_by_overflow_mode>any</group_by_overflow_mode>",
	"timebreak":  "<max_execution_time>1</max_execution_time><timeout_overflow_mode>break</timeout_overflow_mode>",
	"resultcut":  "<max_result_rows>2</max_result_rows><result_overflow_mode>break</result_overflow_mode>",
	"leafcut":    "<max_rows_to_read_leaf>100000</max_rows_to_read_leaf><read_overflow_mode_leaf>break</read_overflow_mode_leaf>",
	"limit":      "<limit>2</limit><offset>1</offset>",
	"nomerge":    "<distributed_group_by_no_merge>1</distributed_group_by_no_merge>",
	"unsharded":  "<skip_unavailable_shards>1</skip_unavailable_shards><optimize_skip_unused_shards>1</optimize_skip_unused_shards>",
	"nulls":      "<join_use_nulls>1</join_use_nulls><transform_null_in>1</transform_null_in>",
	"totals":     "<group_by_use_nulls>1</group_by_use_nulls><prefer_column_name_to_alias>1</prefer_column_name_to_alias>",
	"positional": "<enable_positional_arguments>1</enable_positional_arguments><aggregate_functions_null_for_empty>1</aggregate_functions_null_for_empty>",
	"sampled":    "<max_parallel_replicas>3</max_parallel_replicas><final>1</final>",
	"cached":     "<use_query_cache>1</use_query_cache>",
	"tinyblocks": "<max_block_size>1</max_block_size><max_threads>1</max_threads><group_by_two_level_threshold>1</group_by_two_level_threshold>",
	"twice":      "<readonly>2</readonly>",
}

const trapPassword = "trap-secret"

// startFragile starts a cluster of this process alone.
func startFragile(t testing.TB) (*lab.Cluster, bool) {
	t.Helper()
	var profiles, users strings.Builder
	all := maps.Clone(traps)
	all["readcut"] = "<max_rows_to_read>5</max_rows_to_read><read_overflow_mode>break</read_overflow_mode>"
	for name, settings := range all {
		fmt.Fprintf(&profiles, "<%s>%s</%s>", name, settings, name)
		fmt.Fprintf(&users, "<%s><password>%s</password><networks><ip>127.0.0.1</ip></networks><profile>%s</profile><quota>default</quota></%s>", name, trapPassword, name, name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	c, err := lab.StartClickHouse(ctx, lab.ClickHouseOptions{
		UsersXML: []string{"<profiles>" + profiles.String() + "</profiles><users>" + users.String() + "</users>"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, true
}

// truth is the unsliced query's answer: the cells by the first one, which is
// different in each group.
func (j *testJob) truth(condition string) map[string]string {
	j.t.Helper()
	truth := map[string]string{}
	for _, line := range j.source.ask(j.t, "SELECT sum(pv), count(), max(dt) FROM "+database+".events WHERE dt = '"+date+"' AND "+condition+" GROUP BY shop, channel") {
		pv, rest, _ := strings.Cut(line, "\t")
		truth[pv] = rest
	}
	return truth
}

// exact compares the job's table with a truth.
func (j *testJob) exact(truth map[string]string) {
	j.t.Helper()
	got := map[string]string{}
	for key, cells := range j.cells() {
		pv := long(cells["pv"])
		if _, twice := got[pv]; twice {
			j.t.Errorf("pv %s is there twice, again at %q", pv, key)
		}
		got[pv] = cells["rows"] + "\t" + cells["newest"]
	}
	if len(truth) == 0 || fmt.Sprint(got) != fmt.Sprint(truth) {
		j.t.Errorf("in HBase %v\nin ClickHouse %v", got, truth)
	}
}

// TestFragile runs one test after the other: some break the cluster.
func TestFragile(t *testing.T) {
	t.Parallel()
	fragile.loaded(t)
	t.Run("P1 exact whatever the profile", p1ExactWhateverTheProfile)
	t.Run("P3 limit of the profile", p3ProfileLimit)
	t.Run("node killed", nodeKilled)
	t.Run("node paused", nodePaused)
}

// P1 holds whatever the profile of the user has set.
func p1ExactWhateverTheProfile(t *testing.T) {
	for name := range traps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, fragile, "username: mover", "username: "+name)
			j.env["TEST_PASSWORD"] = trapPassword
			j.forbidden = append(j.forbidden, trapPassword)
			o := j.run(0)
			j.exact(j.truth("1"))
			if t.Failed() {
				t.Logf("%v", o)
			}
		})
	}
}

// A limit of the profile that the mover does not set itself ends a run, and
// does not cut it.
func p3ProfileLimit(t *testing.T) {
	j := newJob(t, fragile, "username: mover", "username: readcut")
	j.env["TEST_PASSWORD"] = trapPassword
	o := j.run(4)
	if !strings.Contains(o.stderr, "max_rows_to_read") || !strings.Contains(o.stderr, "user's profile") {
		t.Errorf("%v", o)
	}
}

// P3: with a shard gone there is no whole answer, and none is published. P5:
// the same command succeeds when it is back.
func nodeKilled(t *testing.T) {
	j := newSlowJob(t, fragile)
	n := fragile.Nodes[1]
	o := j.midway(func() {
		if err := n.Kill(); err != nil {
			t.Error(err)
		}
	})
	if o.code != 8 || !strings.Contains(o.stderr, "gave up after 4 attempts") {
		t.Errorf("want exit code 8: %v", o)
	}
	if p := j.published(); len(p) > 0 {
		t.Errorf("it was published: %v", p)
	}
	if o := j.command("run", "JOB", "--date", date, "--config-override", quick); o.code != 3 || !strings.Contains(o.stderr, "no replica of shard 2 can be reached") {
		t.Errorf("without the shard: %v", o)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.run(0, "--config-override", quick)
	if n := len(j.cells()); n != 21 {
		t.Errorf("%d rows, want 21", n)
	}
}

// A node that is frozen answers nothing and refuses nothing.
func nodePaused(t *testing.T) {
	j := newJob(t, fragile)
	n := fragile.Nodes[1]
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	o := j.command("run", "JOB", "--date", date)
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	if o.code != 3 || o.took > within || !strings.Contains(o.stderr, "no replica of shard 2 can be reached") {
		t.Errorf("want exit code 3: %v", o)
	}
	j.run(0)
	j.exact(j.truth("1"))
}
