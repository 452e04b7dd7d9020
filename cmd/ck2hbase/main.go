// Command ck2hbase moves the results of aggregations from a ClickHouse cluster
// into HBase: in bounded slices, verified, and published at once.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

func main() {
	// A log that nobody reads any more must not end a run in the middle.
	signal.Ignore(syscall.SIGPIPE)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup would have it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	// The first signal ends the run in order; a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const exitCodes = `Exit codes:
  0  verified and published
  1  a bug: please report it
  2  wrong usage or job file
  3  preflight failed: nothing was written
  4  the source failed for good
  5  the sink failed for good
  6  verification found a difference: not published
  7  another run of the job and date is at work
  8  interrupted, or a transient failure outlasted its retries: run again`

// interrupted is the remedy for what may pass by itself.
const interrupted = "run the same command again"

// run is the program: arguments in, exit code out.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	a := &app{env: env, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	switch {
	case ctx.Err() != nil: // whatever it looked like to who was interrupted
		err = failure.New(failure.Transient, fmt.Errorf("interrupted: %w", err), interrupted)
	case failure.ClassOf(err) == failure.Bug && !a.begun: // by cobra: an unknown command
		err = failure.New(failure.Usage, err, "see ck2hbase --help")
	}
	if !a.reported {
		fmt.Fprintln(stderr, "ck2hbase:", describe(err))
	}
	return int(failure.ClassOf(err))
}

// describe gives an error and its remedy for a person.
func describe(err error) string {
	text := err.Error()
	remedy := failure.Remedy(err)
	if remedy == "" && failure.IsTransient(err) {
		remedy = interrupted
	}
	if remedy != "" && !strings.Contains(text, remedy) {
		text += "\n  → " + remedy
	}
	return text
}

// An app is one invocation of the program.
type app struct {
	env            func(string) (string, bool)
	stdout, stderr io.Writer
	// begun says that a command was found for the arguments, and reported that
	// the error has been shown.
	begun, reported bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:              "ck2hbase",
		Short:            "Move aggregations from ClickHouse to HBase: bounded, verified, published at once",
		Long:             "ck2hbase scatters an aggregation over the nodes of a ClickHouse cluster in bounded slices, puts the\nrows into HBase, checks the counts on both sides, and then publishes them to readers.\n\n" + exitCodes,
		Version:          build().Version,
		SilenceUsage:     true,
		SilenceErrors:    true,
		PersistentPreRun: func(*cobra.Command, []string) { a.begun = true },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return failure.New(failure.Usage, err, "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(a.runCommand(), a.planCommand(), a.getCommand(), a.scanCommand(), a.statusCommand(), a.waitCommand(), a.verifyCommand(), a.versionCommand())
	return root
}

// printed classifies the outcome of writing to standard output.
func printed(err error) error {
	return failure.New(failure.Usage, err, "standard output must be somewhere to write to")
}

// usage makes cobra's own complaints about arguments usage errors.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		return failure.New(failure.Usage, check(c, args), "see "+c.CommandPath()+" --help")
	}
}
