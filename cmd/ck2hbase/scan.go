package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

func (a *app) scanCommand() *cobra.Command {
	l := mover.Lookup{}
	var prefix []string
	var limit int
	c := &cobra.Command{
		Use:   "scan job.yaml",
		Short: "Read rows in the order of their keys as readers see them, through the published pointer",
		Long: "Read rows in the order of their keys as readers see them, through the published pointer: of each level\n" +
			"and period all rows, those with the dimensions that --prefix gives, or the first --limit of them, which are the\n" +
			"top ones where the key begins with a descending metric. The salt does not count: rows come sorted as if the keys had\n" +
			"none. The result is a table, or one JSON object a line with --json. NULL is written \\N.",
		Example: "  ck2hbase scan shop_source.yaml --prefix shop_id=42\n  ck2hbase scan ranking.yaml --period DAY --limit 10",
		Args:    usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	c.Flags().StringVar(&f.date, "date", "", "business date, as 2026-11-29 (default: the newest published one)")
	c.Flags().StringVar(&l.Period, "period", "", "one period of the job (default: all)")
	c.Flags().StringVar(&l.Level, "level", "", "one level's code (default: all that have the dimensions given)")
	c.Flags().StringArrayVar(&prefix, "prefix", nil, "dimension=value: only rows with this value; the dimension must be a leading one of the key (may be repeated)")
	c.Flags().IntVar(&limit, "limit", 0, "rows of each level and period (default: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		con, err := f.console()
		if err != nil {
			return err
		}
		if limit < 0 || limit == 0 && c.Flags().Changed("limit") {
			return failure.New(failure.Usage, errors.New("--limit must be 1 or more"), "leave it out for all rows")
		}
		if err := f.lookup(&l, con, args[0], prefix); err != nil {
			return err
		}
		p := f.printer()
		if err := l.Scan(c.Context(), limit, p.begin, p.row); err != nil {
			return err
		}
		return p.end()
	}
	return c
}

// lookup fills what get and scan share.
func (f *common) lookup(l *mover.Lookup, con *console, path string, assignments []string) (err error) {
	l.Log = con.log
	if f.date != "" {
		if l.Date, err = f.parseDate(); err != nil {
			return err
		}
	}
	if l.Values, err = parseAssignments(assignments); err != nil {
		return err
	}
	l.Job, err = f.load(path)
	return err
}
