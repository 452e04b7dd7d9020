package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

const userPassword = "profile-secret"

// usersXML gives each profile a user of its name.
func usersXML(profiles map[string]string) string {
	var p, u strings.Builder
	for name, settings := range profiles {
		fmt.Fprintf(&p, "<%s>%s</%s>", name, settings, name)
		fmt.Fprintf(&u, "<%s><password>%s</password><networks><ip>127.0.0.1</ip></networks><profile>%s</profile><quota>default</quota></%s>",
			name, userPassword, name, name)
	}
	return "<profiles>" + p.String() + "</profiles><users>" + u.String() + "</users>"
}

// as is the source for one of the users.
func as(src job.Source, user string) job.Source {
	src.Username, src.Password = user, userPassword
	return src
}

// eachVersion runs a test for both versions, over the protocols that each has,
// on a cluster of its own with users of these profiles.
func eachVersion(t *testing.T, opts lab.ClickHouseOptions, test func(t *testing.T, c *target)) {
	t.Helper()
	for name, old := range map[string]bool{"26.9": false, "18.16": true} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.Old = old
			c := start(t, opts)
			t.Run("native", func(t *testing.T) { test(t, over(t, c, way{old: old})) })
			if !old {
				t.Run("http", func(t *testing.T) { test(t, over(t, c, way{protocol: job.HTTP})) })
			}
		})
	}
}

// What the mover must set to have complete answers, for a user that cannot.
const complete = "<fallback_to_stale_replicas_for_distributed_queries>0</fallback_to_stale_replicas_for_distributed_queries><max_parallel_replicas>1</max_parallel_replicas>"

// A user is let in if the job's limits or tighter ones are in force for it,
// and else is told what to change.
func TestUsersThatCannotSetLimits(t *testing.T) {
	const tight = "<max_execution_time>30</max_execution_time><max_memory_usage>1000000000</max_memory_usage>" +
		"<max_bytes_before_external_group_by>500000000</max_bytes_before_external_group_by>"
	capped := func(inner string) string { return "<constraints>" + inner + "</constraints>" }
	profiles := map[string]string{
		"readonly1_loose":    "<readonly>1</readonly>",
		"readonly1_tight":    "<readonly>1</readonly>" + tight + complete,
		"readonly1_partial":  "<readonly>1</readonly>" + tight + complete + "<skip_unavailable_shards>1</skip_unavailable_shards>",
		"readonly1_extremes": "<readonly>1</readonly>" + tight + complete + "<extremes>1</extremes>",
		"readonly2":          "<readonly>2</readonly>",
	}
	modern := map[string]string{
		"capped_memory": capped("<max_memory_usage><max>900000000</max></max_memory_usage><max_threads><max>1</max></max_threads>" +
			"<max_bytes_before_external_group_by><min>300000000</min></max_bytes_before_external_group_by>"),
		"fixed_memory": capped("<max_memory_usage><readonly/></max_memory_usage>"),
		"fixed_tight":  tight + capped("<max_memory_usage><readonly/></max_memory_usage><distributed_aggregation_memory_efficient><readonly/></distributed_aggregation_memory_efficient><log_comment><readonly/></log_comment>"),
		"least_time":   "<max_execution_time>7200</max_execution_time>" + capped("<max_execution_time><min>3600</min></max_execution_time>"),
	}
	refused := map[string][]string{ // what the message and its remedy name
		"readonly1_loose":    {"max_execution_time is 0, wanted 60 or less", "max_memory_usage is ", "wanted 2147483648 or less", "readonly=2"},
		"readonly1_partial":  {"skip_unavailable_shards is 1, wanted 0", "readonly=2"},
		"readonly1_extremes": {"extremes is 1, wanted 0", "readonly=2"},
		"fixed_memory":       {"max_memory_usage is 0, wanted 2147483648 or less (the user cannot change it)", "no constraints"},
		"least_time":         {"max_execution_time is 7200, wanted 60 or less (the user's constraints: min 3600, max none)", "no constraints"},
	}
	inForce := map[string]map[string]string{ // for a query
		"readonly1_tight": {"max_memory_usage": "1000000000", "max_execution_time": "30"},
		"readonly2":       {"max_memory_usage": "2147483648", "max_execution_time": "60"},
		"capped_memory":   {"max_memory_usage": "900000000", "max_execution_time": "60", "max_bytes_before_external_group_by": "1073741824"},
		"fixed_tight":     {"max_memory_usage": "1000000000", "max_execution_time": "60"},
	}
	all := usersXML(profiles)
	eachVersion(t, lab.ClickHouseOptions{UsersXML: []string{all}}, func(t *testing.T, c *target) {
		for user := range profiles {
			t.Run(user, func(t *testing.T) { checkUser(t, as(source(c), user), refused[user], inForce[user]) })
		}
	})
	t.Run("26.9 constraints", func(t *testing.T) {
		cluster := start(t, lab.ClickHouseOptions{UsersXML: []string{usersXML(modern)}})
		for _, w := range []way{{}, {protocol: job.HTTP}} {
			c := over(t, cluster, w)
			for user := range modern {
				t.Run(user+" "+string(w.protocol), func(t *testing.T) { checkUser(t, as(source(c), user), refused[user], inForce[user]) })
			}
		}
	})
}

func checkUser(t *testing.T, src job.Source, refused []string, inForce map[string]string) {
	t.Helper()
	client, err := tryOpen(t, src, limits)
	if len(refused) > 0 {
		for _, want := range refused {
			if failure.ClassOf(err) != failure.Preflight || !strings.Contains(fmt.Sprint(err, failure.Remedy(err)), want) {
				t.Errorf("class %d, %v\nremedy %q; want a preflight error with %q", failure.ClassOf(err), err, failure.Remedy(err), want)
			}
		}
		if clickhouse.Key(err) != "source.username" {
			t.Errorf("the error is about %s", clickhouse.Key(err))
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n := client.Nodes()[0]
	for _, gentle := range []bool{false, true} {
		for name, want := range inForce {
			if gentle && name == "max_bytes_before_external_group_by" {
				continue
			}
			var got string
			q := clickhouse.Query{ID: queryID(t), SQL: "SELECT value FROM system.settings WHERE name = '" + name + "'", Gentle: gentle}
			if err := n.Row(t.Context(), q, &got); err != nil || got != want {
				t.Errorf("gentle %v: %s is %q, want %s: %v", gentle, name, got, want, err)
			}
		}
	}
}
