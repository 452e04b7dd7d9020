package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify job.yaml --date 2026-11-29",
		Short: "Compare what is published of a job for a business date with ClickHouse as it is now",
		Long: "Compare what is published of a job for a business date with what ClickHouse gives for it now, in each HBase cluster of the job. Nothing is written.\n" +
			"The report goes to standard output, progress and log to standard error. With --level full it asks the slices again.",
		Args: usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	f.needDate(c)
	f.needPlan(c)
	level := c.Flags().String("level", "", "count or full, in place of the job's verify.level")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch job.VerifyLevel(*level) {
		case "":
		case job.VerifyCount, job.VerifyFull:
			f.overrides = append(f.overrides, "verify.level="+*level)
		default:
			return failure.New(failure.Usage, fmt.Errorf("level %q is unknown", *level), "use --level count or full")
		}
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		var first error
		for i := range max(len(m.Job.HBase.Clusters), 1) {
			m.Progress = new(report.Progress)
			stop := con.show(m.Progress)
			result, err := m.Verify(c.Context(), i)
			stop()
			if result != nil {
				if printErr := f.printResult(result); printErr != nil {
					con.log.Error("the report could not be written", "error", printErr)
				}
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
	return c
}
