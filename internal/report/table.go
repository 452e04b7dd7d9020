package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the result for people: a title, a table with a line for
// each level and period, and the sums.
func (r *Result) WriteTable(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s  %s\n", r.Job, r.Date, r.State)
	if len(r.Units) > 0 {
		out.WriteString("\n")
		r.units(&out)
		out.WriteString("\n")
	}
	for _, line := range r.facts() {
		fmt.Fprintf(&out, "%-10s %s\n", line[0], strings.ReplaceAll(line[1], "\n", "\n"+strings.Repeat(" ", 11)))
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (r *Result) units(out *strings.Builder) {
	rows := [][]string{{"level", "period", "from", "to", "slices", "source rows", "clickhouse", r.receiver(), "verified"}}
	for _, u := range r.Units {
		verified := "NO"
		if u.HBase == nil {
			verified = "–" // nothing was compared
		}
		if u.Verified {
			verified = "yes"
		}
		if u.Verified && u.Cells != nil {
			verified = "every cell"
		}
		rows = append(rows, []string{
			u.Level, u.Period, u.Start, u.End, strconv.Itoa(u.Slices),
			optional(u.SourceRows), optional(u.ClickHouse), optional(u.HBase), verified,
		})
	}
	const numbersFrom, numbersTo = 4, 8
	align(out, rows, func(column int) bool { return column >= numbersFrom && column < numbersTo })
}

// receiver is a short name of what the rows went to.
func (r *Result) receiver() string {
	if r.Receiver != "" {
		return r.Receiver
	}
	return "hbase"
}

// align writes rows in columns; right tells the columns of numbers.
func align(out *strings.Builder, rows [][]string, right func(column int) bool) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right(i) {
				line.WriteString("  " + pad + cell)
			} else {
				line.WriteString("  " + cell + pad)
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// facts are the lines below the table, each a name and a text.
func (r *Result) facts() [][2]string {
	t := r.Totals
	var facts [][2]string
	add := func(name, format string, args ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, args...)})
	}
	switch {
	case r.DryRun:
		add("dry run", "nothing was written: %s rows, %s cells, %s would go to %s", thousands(t.RowsWritten), thousands(t.Cells), size(t.Bytes), r.Sink)
	case r.Compared:
		add("compared", "%s with ClickHouse as it is now", r.Sink)
	case r.Sink != "":
		add("written", "%s rows, %s cells, %s to %s", thousands(t.RowsWritten), thousands(t.Cells), size(t.Bytes), r.Sink)
	}
	if t.SourceRetries+t.SinkRetries > 0 {
		add("retries", "%d of slices, %d of batches", t.SourceRetries, t.SinkRetries)
	}
	if t.SpooledBytes > 0 {
		add("spooled", "%s waited on disk: the sink was slower than ClickHouse", size(t.SpooledBytes))
	}
	splits, changed := 0, false
	for _, u := range r.Units {
		splits += u.Splits
		changed = changed || u.SourceChanged
	}
	if changed {
		add("note", "the source changed during the run: each slice shows the moment at which it was read%s", r.where())
	}
	switch r.SourceReruns {
	case 0:
	case 1:
		add("note", "what changed in the source meanwhile was gathered again")
	default:
		add("note", "what changed in the source meanwhile was gathered again, in %d more rounds", r.SourceReruns)
	}
	for _, text := range r.Notes {
		add("note", "%s", text)
	}
	if r.SourceUnknown != "" {
		add("note", "%s", r.SourceUnknown)
	}
	if splits > 0 {
		add("cut", "%d more slices than planned: those that hit a limit were cut", splits)
	}
	var phases []string
	for _, p := range r.Phases {
		phases = append(phases, fmt.Sprintf("%s %.1f s", p.Phase, p.Seconds))
	}
	if phases != nil {
		add("time", "%.1f s: %s", r.Seconds, strings.Join(phases, ", "))
	}
	if r.Run != "" {
		add("run", "%s", r.Run)
	}
	for _, c := range r.Clusters {
		text := c.State
		if c.State == string(Published) {
			text += fmt.Sprintf(": readers take cells from timestamp %d to below %d", c.Since, c.Until)
		}
		if c.Error != "" {
			text += ": " + c.Error
		}
		add("cluster", "%s %s", c.Name, text)
	}
	if r.State == Published && r.Until > 0 && len(r.Clusters) == 0 {
		add("readers", "take cells from timestamp %d to below %d", r.Since, r.Until)
	}
	if r.Error != nil {
		add("error", "%s", r.Error.Message)
		if r.Error.Remedy != "" {
			add("→", "%s", r.Error.Remedy)
		}
	}
	return facts
}

// where lists the first of the partitions that changed.
func (r *Result) where() string {
	const most = 5
	text := ""
	for i, c := range r.SourceChanges {
		if i == most {
			return text + fmt.Sprintf("\n… and %d more", len(r.SourceChanges)-most)
		}
		text += fmt.Sprintf("\npartition %s at %s: %s rows before, %s after", c.Partition, c.Node, thousands(c.RowsBefore), thousands(c.RowsAfter))
		if c.Mutated {
			text += ", mutated"
		}
	}
	return text
}

func optional(n *uint64) string {
	if n == nil {
		return "–"
	}
	return thousands(*n)
}

// thousands writes 1234567 as 1,234,567.
func thousands[T int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes bytes with a decimal unit.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, unit := range []string{"kB", "MB", "GB"} {
		if v /= 1000; v < 999.95 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f TB", v/1000)
}
