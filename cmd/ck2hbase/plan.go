package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

func (a *app) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan job.yaml --date 2026-11-29",
		Short: "Show what a run would ask, of whom, and why; writes nothing",
		Args:  usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	f.needDate(c)
	f.needPlan(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		stop := con.show(m.Progress)
		plan, err := m.Plan(c.Context())
		stop()
		if err != nil {
			return err
		}
		if f.json {
			return printed(writeJSON(a.stdout, plan))
		}
		return printed(writePlan(a.stdout, plan))
	}
	return c
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func writePlan(w io.Writer, p *scatter.Plan) error {
	out := new(strings.Builder)
	fmt.Fprintf(out, "job %s, date %s: %d slices over %d source rows, plan %s\n\n", p.Job, p.Date, p.Slices(), p.Rows(), p.ID)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "node\tshard\treplica\taddress\tversion")
	for i, n := range p.Nodes {
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t%s\n", i, n.Shard, n.Replica, n.Addr, n.Version)
	}
	_ = table.Flush() // to memory
	fmt.Fprintf(out, "\nevery query carries: %s\n", strings.Join(p.Limits, ", "))
	for i := range p.Units {
		writeUnit(out, &p.Units[i])
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeUnit(out *strings.Builder, u *scatter.UnitPlan) {
	fmt.Fprintf(out, "\nlevel %s, period %s (%s to %s): %d rows into about %d groups\n", u.Level, u.Period, u.Start, u.End, u.Rows, u.Groups)
	fmt.Fprintf(out, "  strategy %s by %s: %s", u.Strategy, u.Dimension, u.Reason)
	for _, name := range slices.Sorted(maps.Keys(u.Cardinality)) {
		fmt.Fprintf(out, "; %s has about %d values", name, u.Cardinality[name])
	}
	if u.Sampled > 0 {
		fmt.Fprintf(out, " (from a sample of %d rows)", u.Sampled)
	}
	fmt.Fprintf(out, "\n  %d slices: %s\n", len(u.Slices), u.Count)
	writeChoices(out, u.Choices)
	writeSlices(out, u)
	if len(u.Slices) > 1 {
		fmt.Fprintln(out, "  slice 0 asks as follows, the others for their own rows (--json shows each):")
	}
	fmt.Fprintf(out, "  %s\n", u.Slices[0].SQL)
}

// writeChoices shows what each strategy would cost, or why it cannot be used.
func writeChoices(out *strings.Builder, choices []scatter.Choice) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  strategy\tslices\trows read\tCPU\t")
	for _, c := range choices {
		mark, slices, rows, cpu := " ", "-", "-", "-"
		if c.Chosen {
			mark = "*"
		}
		if c.Slices > 0 {
			slices, rows, cpu = fmt.Sprint(c.Slices), fmt.Sprint(c.Rows), fmt.Sprintf("%.1f s", c.CPU)
		}
		fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\t%s\n", mark, c.Strategy, slices, rows, cpu, c.Reason)
	}
	_ = table.Flush() // to memory
}

// mostSlices is how many slices of a unit are shown.
const mostSlices = 24

func writeSlices(out *strings.Builder, u *scatter.UnitPlan) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  slice\tnode\ttakes\trows\tshare\t")
	for _, s := range u.Slices[:min(len(u.Slices), mostSlices)] {
		share := 100 * float64(s.Rows) / float64(max(1, u.Rows))
		note := ""
		if s.Indivisible {
			note = "more than its share: a single value cannot be cut"
		}
		if s.Estimated {
			note = "estimated"
		}
		fmt.Fprintf(table, "  %s\t%d\t%s\t%d\t%.1f %%\t%s\n", s.Name, s.Node, s.Takes(), s.Rows, share, note)
	}
	_ = table.Flush() // to memory
	if more := len(u.Slices) - mostSlices; more > 0 {
		fmt.Fprintf(out, "  and %d more (--json shows each)\n", more)
	}
}
