package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/mover"
)

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status job.yaml --date 2026-11-29",
		Short: "Show what is published of a job for a business date, in each cluster",
		Long: "Show what is published of a job for a business date, in each HBase cluster of the job: as a table, or with --json.\n" +
			"A cluster is behind if another has a newer run; the next run of the job brings it up to it.",
		Args: usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	f.needDate(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		all, err := mover.Status(c.Context(), m.Job, m.Date, con.log)
		if err != nil {
			return err
		}
		return printed(f.printStatus(all))
	}
	return c
}

func (f *common) printStatus(all []mover.ClusterStatus) error {
	if f.json {
		return writeJSON(f.app.stdout, all)
	}
	w := tabwriter.NewWriter(f.app.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "cluster\tstate\tlevel\tperiod\trun\trows\tsince\tpublished")
	for _, s := range all {
		if len(s.Units) == 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Cluster, s.State, strings.ReplaceAll(s.Error, "\n", " "))
		}
		for _, p := range s.Units {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.Cluster, s.State, p.Level, p.Period, p.Run, p.Rows, p.Since, p.At.Format(time.RFC3339))
		}
		if r := s.Last; r != nil && r.Error != "" {
			fmt.Fprintf(w, "%s\tlast run %s: %s\n", s.Cluster, r.State, strings.ReplaceAll(r.Error, "\n", " "))
		}
	}
	return w.Flush()
}
