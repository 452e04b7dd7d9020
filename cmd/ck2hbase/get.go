package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

func (a *app) getCommand() *cobra.Command {
	var period string
	c := &cobra.Command{
		Use:   "get job.yaml dimension=value …",
		Short: "Read one row as readers see it, through the published pointer",
		Long: "Read one row as readers see it, through the published pointer, as one JSON object a line and period.\n" +
			"The dimensions that are named choose the level. NULL is written \\N. \"metrics\" is null where the\n" +
			"published run has no such row.",
		Example: "  ck2hbase get shop_source.yaml shop_id=42 first_source=app\n  ck2hbase get flights.yaml 'tailnum=\\N' carrier=UA",
		Args:    usage(cobra.MinimumNArgs(2)),
	}
	f := a.common(c)
	c.Flags().StringVar(&f.date, "date", "", "business date, as 2026-11-29 (default: the newest published one)")
	c.Flags().StringVar(&period, "period", "", "one period of the job (default: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		con, err := f.console()
		if err != nil {
			return err
		}
		l := mover.Lookup{Period: period, Log: con.log}
		if f.date != "" {
			if l.Date, err = f.parseDate(); err != nil {
				return err
			}
		}
		if l.Values, err = parseAssignments(args[1:]); err != nil {
			return err
		}
		if l.Job, err = f.load(args[0]); err != nil {
			return err
		}
		found, err := l.Get(c.Context())
		if err != nil {
			return err
		}
		for _, one := range found {
			line, err := json.Marshal(one)
			if err != nil {
				return failure.New(failure.Sink, err, "")
			}
			if _, err := fmt.Fprintf(a.stdout, "%s\n", line); err != nil {
				return printed(err)
			}
		}
		return nil
	}
	return c
}
