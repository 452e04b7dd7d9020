package job

import (
	"slices"
	"strings"
)

// resolveColumns gives each metric its qualifier.
func (d *decoder) resolveColumns(h *HBase, n *node) {
	if h.Pack != "" {
		d.resolvePack(h, n)
		return
	}
	names := make([]string, len(d.job.Metrics))
	h.Columns = make([]string, len(d.job.Metrics))
	for i, m := range d.job.Metrics {
		names[i], h.Columns[i] = m.Name, m.Name
	}
	if n == nil {
		return
	}
	if n.kind != kindMap {
		d.wants(n, "a mapping of metrics to qualifiers", "write {pv: p}")
		return
	}
	seen := map[string]bool{}
	for _, e := range n.keys {
		i := slices.Index(names, e.key)
		switch {
		case seen[e.key]:
			d.report(e.at, "keep one of the two", "the metric %q is given twice", shownKey(e.key))
		case i < 0:
			d.report(e.at, "the metrics are: "+strings.Join(names, ", "), "%s: unknown metric %q%s", name(n), shownKey(e.key), didYouMean(e.key, names))
		default:
			d.textField(&h.Columns[i], checkPlain)(e.value)
		}
		seen[e.key] = true
	}
	for i, q := range h.Columns {
		if j := slices.Index(h.Columns, q); j < i {
			d.report(n.at, "give each metric a qualifier of its own", "the metrics %q and %q have the same qualifier %q", names[j], names[i], q)
		}
	}
}

// resolvePack makes one column of all metrics.
func (d *decoder) resolvePack(h *HBase, columns *node) {
	h.Columns = []string{h.Pack}
	if columns != nil {
		d.report(columns.at, "remove columns: the members of the JSON object have the metrics' names", "%s: with sink.hbase.pack there is one column", name(columns))
	}
	for _, m := range d.job.Metrics {
		if m.Encode != EncodeAuto && m.Encode != EncodeText {
			at := d.root.get("metrics").get(m.Name).get("encode").at
			d.report(at, "remove encode, or write encode: text for a JSON string", "metric %s: with sink.hbase.pack it is written as JSON, not as %s", m.Name, m.Encode)
		}
	}
}
