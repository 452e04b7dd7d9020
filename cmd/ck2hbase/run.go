package main

import (
	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/mover"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

func (a *app) runCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "run job.yaml --date 2026-11-29",
		Short: "Run a job for a business date: aggregate, write, verify, publish",
		Long: "Run a job for a business date. The report goes to standard output, progress and log to standard error.\n\n" +
			exitCodes,
		Args: usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	f.needDate(c)
	c.Flags().StringVar(&listen, "metrics-listen", "", "serve Prometheus metrics at this address while running, as :9090")
	c.RunE = func(c *cobra.Command, args []string) error {
		j, err := f.load(args[0])
		if err != nil {
			return err
		}
		date, err := f.parseDate()
		if err != nil {
			return err
		}
		con, err := f.console()
		if err != nil {
			return err
		}
		m := &mover.Mover{Job: j, Date: date, Log: con.log, Progress: new(report.Progress)}
		if listen != "" {
			server, err := report.Listen(c.Context(), listen, report.Registry(m.Progress, j.Name, build()), con.log)
			if err != nil {
				return err
			}
			defer server.Close()
		}
		stop := con.show(m.Progress)
		result, err := m.Run(c.Context())
		stop()
		if printErr := f.printResult(result); printErr != nil && err == nil {
			return printErr
		}
		return err
	}
	return c
}

func (f *common) printResult(r *report.Result) error {
	if f.json {
		return r.WriteJSON(f.app.stdout)
	}
	return r.WriteTable(f.app.stdout)
}
