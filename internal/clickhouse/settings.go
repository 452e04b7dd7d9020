package clickhouse

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A setting is sent with every query. Numbers travel in the query packet: old
// servers ignore some of them (max_result_rows) in a SETTINGS clause. Words
// travel in the SETTINGS clause: old servers take only numbers in the packet.
type setting struct {
	name string
	num  int64
	word string
	// mustHold says that a run is refused where the server did not take the
	// value, because it would be unbounded or could be silently wrong.
	mustHold bool
	// atMost says that any value from 1 to num is as good as num: the server's
	// own limit is tighter.
	atMost bool
}

func (s setting) value() string {
	if s.word != "" {
		return s.word
	}
	return strconv.FormatInt(s.num, 10)
}

const spillSetting = "max_bytes_before_external_group_by"

// bounds gives the settings of every query of the mover: the job's limits, and
// what a user's profile must not change since it would silently change results.
func bounds(l job.Limits, overHTTP bool) []setting {
	s := []setting{
		{name: "max_execution_time", num: int64(l.MaxExecutionTime / time.Second), mustHold: true, atMost: true},
		{name: "max_memory_usage", num: l.MaxMemoryUsage, mustHold: true, atMost: true},
		{name: spillSetting, num: l.MaxBytesBeforeExternalGroupBy, mustHold: true, atMost: true},
		// The server must measure the time that passed, not kill by a forecast.
		{name: "timeout_before_checking_execution_speed", num: 0},
		// The initiator merges bucket by bucket: the largest lever on its memory.
		{name: "distributed_aggregation_memory_efficient", num: 1},
		{name: "connect_timeout_with_failover_ms", num: 2000},
		// How often a server says that it lives, in microseconds; see silence. And
		// how long an initiator waits for a replica that does not, in seconds:
		// 18.16 has that from its own configuration.
		{name: "interactive_delay", num: 100_000},
		{name: "receive_timeout", num: int64(silence / time.Second)},
	}
	if overHTTP {
		s = append(s,
			// A query ends with its connection, but only one that is read-only.
			setting{name: "readonly", num: 2},
			setting{name: "cancel_http_readonly_queries_on_client_close", num: 1},
			// A sink that makes the mover pause is no reason to cut the result off.
			setting{name: "http_send_timeout", num: int64((l.MaxExecutionTime + drain) / time.Second)})
	}
	// Each of these turns a complete answer into a part of it, or into more.
	for _, zero := range []string{
		"skip_unavailable_shards", "extremes", "distributed_group_by_no_merge", "optimize_skip_unused_shards",
		"max_result_rows", "max_result_bytes", "max_rows_to_group_by", "join_use_nulls",
		"fallback_to_stale_replicas_for_distributed_queries", "use_query_cache", "limit", "offset",
	} {
		s = append(s, setting{name: zero, num: 0, mustHold: true})
	}
	s = append(s, setting{name: "max_parallel_replicas", num: 1, mustHold: true})
	for _, mode := range []string{
		"timeout_overflow_mode", "group_by_overflow_mode", "read_overflow_mode", "result_overflow_mode",
		"read_overflow_mode_leaf", "timeout_overflow_mode_leaf", "sort_overflow_mode", "set_overflow_mode", "join_overflow_mode", "distinct_overflow_mode", "transfer_overflow_mode",
	} {
		s = append(s, setting{name: mode, word: "throw", mustHold: true})
	}
	return s
}

// basics keep the answers whole that the mover needs before it knows which
// settings the server has. A profile may cut them, too: a part of
// system.clusters is a cluster, and a part of system.settings hides a setting.
func basics(major, minor uint64) []setting {
	s := []setting{
		{name: "max_result_rows"}, {name: "max_result_bytes"}, {name: "extremes"},
		{name: "result_overflow_mode", word: "throw"}, {name: "read_overflow_mode", word: "throw"},
	}
	const limitsSince, cacheSince = 21, 23
	if major >= limitsSince {
		s = append(s, setting{name: "limit"}, setting{name: "offset"})
	}
	if major > cacheSince || major == cacheSince && minor >= 2 {
		s = append(s, setting{name: "use_query_cache"})
	}
	return s
}

func packet(all []setting) ch.Settings {
	m := make(ch.Settings, len(all))
	for _, s := range all {
		if s.word == "" {
			m[s.name] = int(s.num)
		}
	}
	return m
}

func clause(all []setting) string {
	var words []string
	for _, s := range all {
		if s.word != "" {
			words = append(words, s.name+" = "+Quote(s.word))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " SETTINGS " + strings.Join(words, ", ")
}

func (s setting) holds(got string) bool {
	if got == s.value() {
		return true
	}
	v, err := strconv.ParseFloat(got, 64) // max_execution_time may read 600.0
	if err != nil || s.word != "" {
		return false
	}
	return v == float64(s.num) || (s.atMost && v > 0 && v <= float64(s.num))
}

// Quote writes a string literal of ClickHouse SQL.
func Quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// Limits shows the settings that every query carries, sorted by name.
func (n *Node) Limits() []string {
	all := map[string]string{}
	for _, s := range n.settings {
		all[s.name] = s.value()
	}
	out := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}
