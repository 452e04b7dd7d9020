package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ck2hbase/ck2hbase/internal/report"
)

// build says which program this is: the version from the module or the linker,
// the revision from version control.
func build() report.Build {
	b := report.Build{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// version is set by the linker: -X main.version=v1.2.3.
var version string

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := build()
			_, err := fmt.Fprintln(a.stdout, "ck2hbase", b.Version, b.Revision, b.Go)
			return printed(err)
		},
	}
}
