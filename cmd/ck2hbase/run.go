package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

func (a *app) runCommand() *cobra.Command {
	var listen, given string
	var dry bool
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
	c.Flags().StringVar(&given, "plan", "", "run the plan in this file, as plan --json printed it, instead of a new one")
	c.Flags().BoolVar(&dry, "dry-run", false, "run the plan and its queries, and count the rows and bytes that would be written, without writing anything")
	c.RunE = func(c *cobra.Command, args []string) error {
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		m.DryRun = dry
		if given != "" {
			if m.Given, err = readPlan(given); err != nil {
				return err
			}
		}
		if listen != "" {
			server, err := report.Listen(c.Context(), listen, report.Registry(m.Progress, m.Job.Name, build()), con.log)
			if err != nil {
				return err
			}
			defer server.Close()
			con.log.Info("metrics are served", "address", server.Addr)
		}
		defer f.onHangup(c.Context(), args[0], m, con)()
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

// readPlan reads a plan as writeJSON wrote it.
func readPlan(path string) (*scatter.Plan, error) {
	const remedy = "give a file with what plan --json printed"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, failure.New(failure.Usage, err, remedy)
	}
	var plan scatter.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, failure.New(failure.Usage, fmt.Errorf("%s is not a plan: %w", path, err), remedy)
	}
	return &plan, nil
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
