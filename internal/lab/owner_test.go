package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNothingOutlivesAKilledOwner(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), envOwner+"=1", "TMPDIR="+tmp)
	owner.Stderr = os.Stderr
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the owner did not start its servers: %v", err)
	}
	var state State
	if err := json.Unmarshal(line, &state); err != nil {
		t.Fatal(err)
	}
	// Every process that works in the owner's directory counts, not only those
	// that the state names.
	before := processesOf(t, tmp)
	pids := []int{state.ClickHouse.Nodes[0].PID, state.OldClickHouse.Nodes[0].PID, state.HBase.Servers[0].PID}
	for _, pid := range pids {
		if processStart(pid) == "" {
			t.Errorf("server %d does not run before the kill", pid)
		}
	}
	if len(before) < len(pids)+1 {
		t.Errorf("found only %d processes of the lab: %v", len(before), before)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	eventually(t, 15*time.Second, func() error {
		if left := processesOf(t, tmp); len(left) > 0 {
			return fmt.Errorf("still running: %v", left)
		}
		if dirs, _ := filepath.Glob(filepath.Join(tmp, tempPrefix+"*")); len(dirs) > 0 {
			return fmt.Errorf("still there: %v", dirs)
		}
		return nil
	})
}

// processesOf lists the processes whose command line names the directory.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && strings.Contains(string(b), dir) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

func TestLeftoversOfADeadOwnerAreRemoved(t *testing.T) {
	tmp := t.TempDir()
	dead, alive := filepath.Join(tmp, tempPrefix+"dead"), filepath.Join(tmp, tempPrefix+"alive")
	self := os.Getpid()
	for dir, owner := range map[string]string{
		dead:  fmt.Sprintf("%d 1", self), // an id that was used again
		alive: fmt.Sprintf("%d %s", self, processStart(self)),
	} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(owner), 0o644); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeLeftovers(tmp)
	if isDir(dead) {
		t.Error("the directory of a dead owner is still there")
	}
	if !isDir(alive) {
		t.Error("the directory of a living owner was removed")
	}
}

// eventually waits until check returns nil, and fails with its last error.
func eventually(t *testing.T, patience time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
