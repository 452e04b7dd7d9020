package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/mover"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// common are the flags of every command that reads a job file.
type common struct {
	app       *app
	date      string
	json      bool
	logFormat string
	overrides []string
	trust     bool
}

func (a *app) common(c *cobra.Command) *common {
	f := &common{app: a}
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	c.Flags().StringVar(&f.logFormat, "log-format", "auto", "format of the log: text, json, or auto: text on a terminal, json elsewhere")
	c.Flags().StringArrayVar(&f.overrides, "config-override", nil, "replace a value of the job file: key.path=value (may be repeated)")
	return f
}

// needDate adds the flag for the business date.
func (f *common) needDate(c *cobra.Command) {
	c.Flags().StringVar(&f.date, "date", "", "business date, as 2026-11-29 (required)")
}

// needPlan adds the flags of what makes a plan.
func (f *common) needPlan(c *cobra.Command) {
	c.Flags().BoolVar(&f.trust, "trust-placement", false, "take the sharding key's word that all rows of a group lie on one shard, without looking")
}

func (f *common) load(path string) (*job.Job, error) {
	return job.Load(path, job.Options{LookupEnv: f.app.env, Overrides: f.overrides})
}

func (f *common) parseDate() (time.Time, error) {
	const remedy = "give the business date as --date 2026-11-29"
	if f.date == "" {
		return time.Time{}, failure.New(failure.Usage, errors.New("the business date is missing"), remedy)
	}
	date, err := job.ParseDate(f.date)
	return date, failure.New(failure.Usage, err, remedy)
}

// mover prepares what commands for a date need: first what the command line alone
// can get wrong, then the job file.
func (f *common) mover(path string) (*mover.Mover, *console, error) {
	date, err := f.parseDate()
	if err != nil {
		return nil, nil, err
	}
	con, err := f.console()
	if err != nil {
		return nil, nil, err
	}
	j, err := f.load(path)
	if err != nil {
		return nil, nil, err
	}
	return &mover.Mover{Job: j, Date: date, TrustPlacement: f.trust, Log: con.log, Progress: new(report.Progress)}, con, nil
}

// console is where progress and log go.
type console struct {
	log    *slog.Logger
	screen *report.Screen // nil without a terminal
}

func (f *common) console() (*console, error) {
	c := &console{}
	out := f.app.stderr
	terminal := isTerminal(out)
	if terminal {
		c.screen = report.NewScreen(out)
		out = c.screen
	}
	switch format := f.logFormat; {
	case format == "text" || format == "auto" && terminal:
		c.log = slog.New(slog.NewTextHandler(out, nil))
	case format == "json" || format == "auto":
		c.log = slog.New(slog.NewJSONHandler(out, nil))
	default:
		return nil, failure.New(failure.Usage, fmt.Errorf("log format %q is unknown", format), "use --log-format text, json or auto")
	}
	return c, nil
}

// show begins to show the progress; the returned function ends it.
func (c *console) show(p *report.Progress) (stop func()) {
	if c.screen != nil {
		return c.screen.Live(p)
	}
	return report.LogProgress(p, c.log, report.LogInterval)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// parseAssignments reads name=value arguments.
func parseAssignments(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, failure.New(failure.Usage, fmt.Errorf("%q is not name=value", arg), "give each dimension as name=value")
		}
		if _, twice := out[name]; twice {
			return nil, failure.New(failure.Usage, fmt.Errorf("%s is given twice", name), "give each dimension once")
		}
		out[name] = value
	}
	return out, nil
}
