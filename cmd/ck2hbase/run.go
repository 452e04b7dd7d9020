package main

import (
	"github.com/spf13/cobra"

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
	f.needPlan(c)
	c.Flags().StringVar(&listen, "metrics-listen", "", "serve Prometheus metrics at this address while running, as :9090")
	c.RunE = func(c *cobra.Command, args []string) error {
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		if listen != "" {
			server, err := report.Listen(c.Context(), listen, report.Registry(m.Progress, m.Job.Name, build()), con.log)
			if err != nil {
				return err
			}
			defer server.Close()
			con.log.Info("metrics are served", "address", server.Addr)
		}
		stop := con.show(m.Progress)
		result, err := m.Run(c.Context())
		stop()
		if printErr := f.printResult(result); printErr != nil {
			// The exit code says what became of the run, and readers have seen it.
			con.log.Error("the report could not be written", "error", printErr)
		}
		return err
	}
	return c
}

// printResult writes the report. Where nothing was begun the error is all
// there is to say to a person, and it goes to standard error.
func (f *common) printResult(r *report.Result) error {
	if f.json {
		return r.WriteJSON(f.app.stdout)
	}
	if r.Error != nil && r.Units == nil {
		return nil
	}
	f.app.reported = r.Error != nil && isTerminal(f.app.stdout) && isTerminal(f.app.stderr)
	return r.WriteTable(f.app.stdout)
}
