package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tempPrefix = "ck2hbase-lab-"

// watcherScript waits for the end of its standard input, which comes when the
// owner closes it or dies, however it dies, and then removes the directory. It
// tries again because servers may need a moment to be gone.
const watcherScript = `trap '' INT TERM HUP
cat >/dev/null
for i in 1 2 3 4 5; do rm -rf -- "$1" 2>/dev/null && exit 0; sleep 0.3; done`

// session is one temporary directory with the ports reserved for the servers
// in it. It vanishes with close, or with this process.
type session struct {
	dir     string
	ports   *os.File // holds the locks of the ports in taken
	taken   map[int]bool
	watcher *exec.Cmd
	pipe    *os.File
}

func newSession() (*session, error) {
	removeLeftovers(os.TempDir())
	dir, err := os.MkdirTemp("", tempPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	s := &session{dir: dir, taken: map[int]bool{}}
	if err := s.claim(); err != nil {
		return nil, errors.Join(fmt.Errorf("temporary directory: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// claim says whose directory it is and starts the watcher.
func (s *session) claim() error {
	self := os.Getpid()
	owner := fmt.Sprintf("%d %s", self, processStart(self))
	if err := os.WriteFile(filepath.Join(s.dir, "owner"), []byte(owner), 0o644); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watcherScript, "ck2hbase-lab-watcher", s.dir)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return err
	}
	s.watcher, s.pipe = cmd, w
	return nil
}

// close removes the directory and frees the ports. The servers must be gone.
func (s *session) close() error {
	err := os.RemoveAll(s.dir)
	if s.pipe != nil {
		s.pipe.Close()
		_ = s.watcher.Wait()
		s.pipe = nil
	}
	if s.ports != nil {
		s.ports.Close()
		s.ports = nil
	}
	return err
}

// removeLeftovers deletes lab directories whose owner is dead: what remains
// when the watcher was killed too, as at a power cut.
func removeLeftovers(tmp string) {
	dirs, err := filepath.Glob(filepath.Join(tmp, tempPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !ownerAlive(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

func ownerAlive(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "owner"))
	if err != nil {
		return false
	}
	pid, start, _ := strings.Cut(string(b), " ")
	n, err := strconv.Atoi(pid)
	return err == nil && sameProcess(n, start)
}

// sameProcess tells whether the process with this id is still the one that
// started then: ids are used again.
func sameProcess(pid int, start string) bool {
	now := processStart(pid)
	return now != "" && now == start
}

// processStart returns the start time of a process in clock ticks since boot,
// as text; "" when there is none, or when it only waits to be reaped.
func processStart(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the name in parentheses and may hold spaces.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}
