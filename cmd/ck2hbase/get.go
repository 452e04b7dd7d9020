package main

import (
	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/mover"
)

func (a *app) getCommand() *cobra.Command {
	l := mover.Lookup{}
	c := &cobra.Command{
		Use:   "get job.yaml dimension=value …",
		Short: "Read one row as readers see it, through the published pointer",
		Long: "Read one row as readers see it, through the published pointer, for each period: as a table, or with --json as one\n" +
			"JSON object a line. The dimensions that are named choose the level. NULL is written \\N. Where the published run\n" +
			"has no such row, the table says so, and \"metrics\" is null.",
		Example: "  ck2hbase get shop_source.yaml shop_id=42 first_source=app\n  ck2hbase get flights.yaml 'tailnum=\\N' carrier=UA --json",
		Args:    usage(cobra.MinimumNArgs(2)),
	}
	f := a.common(c)
	c.Flags().StringVar(&f.date, "date", "", "business date, as 2026-11-29 (default: the newest published one)")
	c.Flags().StringVar(&l.Period, "period", "", "one period of the job (default: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		con, err := f.console()
		if err != nil {
			return err
		}
		if err := f.lookup(&l, con, args[0], args[1:]); err != nil {
			return err
		}
		found, err := l.Get(c.Context())
		if err != nil {
			return err
		}
		p := f.printer()
		for _, one := range found {
			if err := p.begin(one); err != nil {
				return err
			}
			if err := p.row(one); err != nil {
				return err
			}
		}
		return p.end()
	}
	return c
}
