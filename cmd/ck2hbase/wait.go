package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

func (a *app) waitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "wait job.yaml --date 2026-11-29 --timeout 2h",
		Short: "Wait until a job is published for a business date",
		Long: "Wait until all levels and periods of a job are published for a business date, and show them as status does: a scheduler's sensor.\n" +
			"With several HBase clusters it waits for all of them, or with require: any for one. It asks HBase only, every 10 seconds.",
		Args: usage(cobra.ExactArgs(1)),
	}
	f := a.common(c)
	f.needDate(c)
	timeout := c.Flags().Duration("timeout", time.Hour, "how long to wait; 0 looks once")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *timeout < 0 {
			return failure.New(failure.Usage, errors.New("the timeout is negative"), "give a duration as --timeout 2h")
		}
		m, con, err := f.mover(args[0])
		if err != nil {
			return err
		}
		all, err := mover.Wait(c.Context(), m.Job, m.Date, *timeout, con.log)
		if err != nil {
			return err
		}
		return printed(f.printStatus(all))
	}
	return c
}
