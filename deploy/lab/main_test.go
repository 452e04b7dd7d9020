package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// command builds the program and gives it a cache of its own, which borrows the
// real one's downloads, so that a lab somebody has up is not in the way.
func command(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	if err := lab.Prepare(t.Context(), lab.Needs{ClickHouse: true, Flights: true}, nil); err != nil {
		t.Fatal(err)
	}
	real, err := lab.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache, binary := t.TempDir(), filepath.Join(t.TempDir(), "lab")
	entries, err := os.ReadDir(real)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lab" && e.Name() != "locks" {
			if err := os.Symlink(filepath.Join(real, e.Name()), filepath.Join(cache, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), lab.EnvCache+"="+cache)
		return cmd
	}
}

func run2(t *testing.T, cmd *exec.Cmd, wantCode int) (stdout string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	code, err := exitCode(cmd.Run())
	if err != nil || code != wantCode {
		t.Fatalf("%v: exit code %d (%v), want %d\n%s%s", cmd.Args, code, err, wantCode, out.String(), errOut.String())
	}
	return out.String()
}

func TestUpStatusDown(t *testing.T) {
	lab := command(t)
	run2(t, lab("status"), 1)
	out := run2(t, lab("up", "--clickhouse", "1"), 0)
	t.Cleanup(func() { _ = lab("down").Run() })
	if !strings.Contains(out, "native 127.0.0.1:") {
		t.Errorf("up says %q", out)
	}
	if again := run2(t, lab("status"), 0); again != out {
		t.Errorf("status says %q, up said %q", again, out)
	}
	run2(t, lab("up", "--clickhouse", "1"), 1) // not twice
	run2(t, lab("down"), 0)
	run2(t, lab("status"), 1)
	run2(t, lab("down"), 0) // nothing to do is no failure
	run2(t, lab("sideways"), 2)
}

func TestExec(t *testing.T) {
	lab := command(t)
	out := run2(t, lab("exec", "--clickhouse", "1", "--", "/bin/sh", "-c", `grep -c '"tcp"' "$CK2HBASE_LAB"; exit 37`), 37)
	if strings.TrimSpace(out) != "1" {
		t.Errorf("the command saw %q", out)
	}
}

func TestExecForwardsSignals(t *testing.T) {
	lab := command(t)
	ready := filepath.Join(t.TempDir(), "ready")
	script := `trap 'exit 9' TERM; touch "$0"; while :; do sleep 0.05; done`
	cmd := lab("exec", "--clickhouse", "1", "--", "/bin/sh", "-c", script, ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(errors.New("the command did not start"))
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := exitCode(<-ended); code != 9 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}
