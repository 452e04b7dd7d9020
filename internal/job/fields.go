package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// later makes keys that are refused as not supported yet.
func later(keys ...string) []field {
	fields := make([]field, len(keys))
	for i, key := range keys {
		fields[i] = field{key: key, later: true}
	}
	return fields
}

// rootFields are the keys of a job file.
func (d *decoder) rootFields() []field {
	j := d.job
	d.after = append(d.after, d.checkNames, d.defaultLevel)
	return append([]field{
		{key: "name", typ: "text", required: true, read: d.textField(&j.Name, checkJobName),
			doc: "Identifies the job in the ledger and in query ids: two files with one name are one job. Letters, digits, `_`, `-`, `.`."},
		{key: "source", typ: "mapping", required: true, fields: d.sourceFields(&j.Source),
			doc: "The ClickHouse side."},
		{key: "dimensions", typ: "list", required: true, element: d.dimensionFields(&Dimension{}), read: d.dimensions,
			doc: "What to group by: a column's name, or a mapping."},
		{key: "metrics", typ: "mapping", required: true, read: d.metrics, byName: d.metricFields(&Metric{}),
			doc: "What to compute, by name: an aggregate expression, or a mapping (see `metrics.*`). The order of the file is kept."},
		{key: "sql", typ: "SQL", def: "made of the other keys", read: d.query(&j.SQL),
			doc: "The way out for what the other keys cannot express: a whole SELECT with `{slice}` in its WHERE; see below."},
		{key: "periods", typ: "list of texts", def: "`[DAY]`", read: d.periods,
			doc: "`DAY`, `WEEK`, `MONTH`, `QUARTER`, `YEAR`, `BY_LAST_DAYS_n` (n from 1 to 3660). Resolved from `--date`, never from the clock; see below."},
		{key: "timezone", typ: "text", def: "`UTC`", read: d.timezone,
			doc: "An IANA name, as `Asia/Shanghai`, in which DateTime values are written into keys and cells."},
		{key: "levels", typ: "list of mappings", def: "one level of all dimensions", read: d.levels, element: d.levelFields(&levelNodes{}),
			doc: "Dimension combinations. Absent: one level of all dimensions whose code is a `1` for each, as `11` for two."},
		{key: "limits", typ: "mapping", def: "see below", fields: d.limitFields(&j.Limits),
			doc: "Forced on every query, on the initiator and on every shard; a query that reaches one throws."},
		{key: "scatter", typ: "mapping", def: "see below", fields: d.scatterFields(&j.Scatter),
			doc: "How the work is cut into slices."},
		{key: "spool", typ: "mapping", def: "see below", fields: d.spoolFields(&j.Spool),
			doc: "Where rows wait on disk when the sink takes them more slowly than ClickHouse gives them, so that a query does not reach its time limit by waiting."},
		{key: "sink", typ: "mapping", required: true, fields: d.sinkFields(), read: d.sink, doc: "Where the rows go: one of these."},
		{key: "verify", typ: "mapping", def: "see below", fields: append([]field{
			{key: "level", typ: "text", def: "`count`", read: d.verifyLevel,
				doc: "`count`: the number of rows of every unit, counted again on ClickHouse, must equal that of distinct keys in HBase. `full`: a checksum of all cells as they were written must equal that of all cells that a scan finds, too."},
			{key: "allow_empty", typ: "true or false", def: "`false`", read: d.boolean(&j.Verify.AllowEmpty),
				doc: "Publish a run for which the source has no rows at all. Without it such a run fails: a mistyped date and a load that is late look the same."},
		}, later("samples", "tolerance", "totals")...), doc: "What is checked before the rows are published."},
	}, later("publish", "sweep", "retain", "settings", "retry")...)
}

func (d *decoder) where(dst *string) func(*node) {
	return func(n *node) {
		if s, ok := d.sql(n, sqlFilter); ok {
			*dst = s
		}
	}
}

// query reads the job's own query.
func (d *decoder) query(dst *string) func(*node) {
	return func(n *node) {
		s, ok := d.sql(n, sqlQuery)
		if !ok {
			return
		}
		switch strings.Count(s, "{slice}") {
		case 1:
		case 0:
			d.report(n.at, "write AND {slice} into its WHERE", "%s: the query has no {slice}, so each slice would compute everything", name(n))
			return
		default:
			d.report(n.at, "write it once, where the rows of the source are read", "%s: {slice} stands in several places, where it may not mean the same", name(n))
			return
		}
		*dst = s
		d.after = append(d.after, func() {
			if len(d.job.Levels) > 1 {
				d.report(n.at, "make a job for each level", "%s: the query has one set of groups, the job has %d levels", name(n), len(d.job.Levels))
			}
		})
	}
}

// sql reads an SQL expression that cannot reach out of parentheses.
func (d *decoder) sql(n *node, form sqlForm) (string, bool) {
	s, ok := d.nonEmpty(n)
	if !ok {
		return "", false
	}
	if _, bad := scanSQL(s, form); bad != nil {
		d.report(n.offset(bad.offset), bad.remedy, "%s: %s", name(n), bad.msg)
		return "", false
	}
	return s, true
}

func (d *decoder) limitFields(l *Limits) []field {
	var spill *node
	d.after = append(d.after, func() { d.checkSpill(l, spill) })
	return append([]field{
		{key: "max_execution_time", typ: "duration", def: "`600s`", read: d.executionTime(l),
			doc: "Of one query, in whole seconds, up to 24h."},
		{key: "max_memory_usage", typ: "size", def: "`10GB`", read: d.size(&l.MaxMemoryUsage, 1<<20),
			doc: "Of one query on one server."},
		{key: "max_bytes_before_external_group_by", typ: "size", def: "half of `max_memory_usage`",
			read: func(n *node) {
				spill = n
				d.size(&l.MaxBytesBeforeExternalGroupBy, 1<<16)(n)
			},
			doc: "Size of the aggregation's state after which the server spills to disk. Less than `max_memory_usage`; merging what was spilled needs about as much again."},
	}, later("max_threads", "max_rows_to_read", "max_bytes_to_read", "max_result_rows", "max_queries_per_second")...)
}

func (d *decoder) executionTime(l *Limits) func(*node) {
	return func(n *node) {
		v, ok := d.duration(n)
		if !ok {
			return
		}
		if v < time.Second || v > 24*time.Hour || v%time.Second != 0 {
			d.report(n.at, "", "%s must be whole seconds, from 1s to 24h", name(n))
			return
		}
		l.MaxExecutionTime = v
	}
}

func (d *decoder) duration(n *node) (time.Duration, bool) {
	const remedy = "write a number with a unit: 600s, 10m, 24h, 90d"
	if n.kind != kindText {
		d.wants(n, "a duration", remedy)
		return 0, false
	}
	text, ok := d.expand(n)
	if !ok {
		return 0, false
	}
	v, err := parseDuration(text)
	if err != nil {
		d.report(n.at, remedy, "%s: %v", name(n), err)
		return 0, false
	}
	return v, true
}

func (d *decoder) checkSpill(l *Limits, spill *node) {
	if spill == nil {
		l.MaxBytesBeforeExternalGroupBy = l.MaxMemoryUsage / 2
		return
	}
	if l.MaxBytesBeforeExternalGroupBy >= l.MaxMemoryUsage {
		d.report(spill.at, "take about half of max_memory_usage",
			"%s (%d bytes) must be less than max_memory_usage (%d bytes)", name(spill), l.MaxBytesBeforeExternalGroupBy, l.MaxMemoryUsage)
	}
}

func (d *decoder) scatterFields(s *Scatter) []field {
	return append([]field{
		{key: "dimension", typ: "text", def: "`auto`", read: d.scatterDimension(s),
			doc: "The dimension whose values are cut into slices; `auto`: the one of highest cardinality, or several together where one has too few values."},
		{key: "strategy", typ: "text", def: "`auto`",
			read: func(n *node) {
				if text, ok := d.choice(n, []string{"auto", "local", "range", "values", "hash"}, []string{"shuffle"}); ok && text != "auto" {
					s.Strategy = text
				}
			},
			doc: "`auto` takes the one of least estimated cost; `local`: each shard aggregates its own table; `range`, `values`: ranges or lists of the dimension's values; `hash`: buckets of their hash. See ARCHITECTURE.md."},
		{key: "slices", typ: "whole number", def: "`auto`", read: d.slices(s),
			doc: "Number of slices of each level and period, 1 to 65536; `auto`: as few as the limits allow, and at least one a node (`local`: one a shard)." +
				" `local` takes as many for each shard, so the number is rounded up; `values` adds one for all that is in no list; there may be fewer where there are fewer values."},
		{key: "per_node", typ: "whole number", def: "1", read: d.intField(&s.PerNode, 1, 64),
			doc: "How many slices may run on one node at once, 1 to 64."},
		{key: "parallel", typ: "whole number", def: "no more bound", read: d.intField(&s.Parallel, 1, 65536),
			doc: "How many slices may run at once on all nodes together."},
	}, later("max_slices", "min_rows")...)
}

func (d *decoder) scatterDimension(s *Scatter) func(*node) {
	return func(n *node) {
		text, ok := d.nonEmpty(n)
		if !ok || text == "auto" {
			return
		}
		d.after = append(d.after, func() {
			i, ok := d.dimensionIndex(n, text)
			if !ok {
				return
			}
			for _, l := range d.job.Levels {
				if !slices.Contains(l.Dimensions, i) {
					d.report(n.at, "take a dimension of every level, or auto",
						"%s: level %q does not group by it, so its groups would be cut apart", name(n), l.Code)
					return
				}
			}
			s.Dimension = text
		})
	}
}

func (d *decoder) slices(s *Scatter) func(*node) {
	return func(n *node) {
		if n.kind == kindText && n.text == "auto" {
			return
		}
		if n.kind == kindText && !strings.Contains(n.text, "${") {
			d.wants(n, "auto, or a whole number from 1 to 65536", "")
			return
		}
		d.intField(&s.Slices, 1, 65536)(n)
	}
}

func (d *decoder) verifyLevel(n *node) {
	if s, ok := d.choice(n, []string{string(VerifyCount), string(VerifyFull)}, []string{"sample"}); ok {
		d.job.Verify.Level = VerifyLevel(s)
	}
}

func (d *decoder) periods(n *node) {
	var periods []Period
	d.list(n, "periods", func(_ int, item *node) {
		s, ok := d.nonEmpty(item)
		if !ok {
			return
		}
		p, err := ParsePeriod(s)
		if err != nil {
			d.report(item.at, "known: DAY, WEEK, MONTH, QUARTER, YEAR, BY_LAST_DAYS_n", "%s: %s", name(n), withoutValue(err, item))
			return
		}
		if slices.Contains(periods, p) {
			d.report(item.at, "remove one", "the period %s is given twice", p)
			return
		}
		periods = append(periods, p)
	})
	d.job.Periods = periods
}

// withoutValue keeps what a variable held out of a message.
func withoutValue(err error, n *node) string {
	if strings.Contains(n.text, "${") {
		return "not valid"
	}
	return err.Error()
}

func (d *decoder) timezone(n *node) {
	s, ok := d.nonEmpty(n)
	if !ok {
		return
	}
	loc, err := time.LoadLocation(s)
	if err != nil || s == "Local" {
		d.report(n.at, "write an IANA name, as Asia/Shanghai or UTC", "%s: unknown time zone", name(n))
		return
	}
	d.job.Timezone = loc
}

func checkJobName(s string) error {
	if len(s) > 100 {
		return fmt.Errorf("longer than 100 characters")
	}
	return checkChars(s, "_-.", "letters, digits, _ - .", true)
}
