package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func testPreparer(t *testing.T) *preparer {
	t.Helper()
	return &preparer{cache: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func TestWrongHashIsRefused(t *testing.T) {
	t.Run("python package", func(t *testing.T) {
		real, err := newPreparer(nil)
		must(t, err)
		python, err := real.venv(t.Context())
		must(t, err)
		r, dir := setuptools(), t.TempDir()
		r.sha256 = strings.Repeat("0", 64)
		err = testPreparer(t).pip(t.Context(), "downloading", python, r, "download", "--no-deps", "-d", dir)
		if !errors.Is(err, errHash) {
			t.Errorf("error is %v", err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("the refused file was kept: %v", left)
		}
	})
	t.Run("jar", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "a.jar"), []byte("a"), 0o644))
		good := fmt.Sprintf("%x  a.jar\n", sha256.Sum256([]byte("a")))
		must(t, verifyFiles(dir, good))
		for name, list := range map[string]string{
			"changed":    fmt.Sprintf("%x  a.jar\n", sha256.Sum256([]byte("b"))),
			"missing":    good + fmt.Sprintf("%x  b.jar\n", sha256.Sum256([]byte("b"))),
			"unexpected": "",
		} {
			if err := verifyFiles(dir, list); !errors.Is(err, errHash) {
				t.Errorf("%s: error is %v", name, err)
			}
		}
	})
}

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no apt-get either
	err := testPreparer(t).demand(t.Context(), hasPythonVenv(), hasMaven())
	want := "missing: Python 3 with venv, Maven; as root on Debian or Ubuntu: apt-get install --no-install-recommends python3-venv maven"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCacheEntriesAreWholeOrAbsent(t *testing.T) {
	p := testPreparer(t)
	var fills atomic.Int32
	fill := func(_ context.Context, dir string) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "f"), []byte("whole"), 0o644)
	}
	// An attempt that failed half way, and one that was killed half way.
	_, err := p.once(t.Context(), "entry", func(_ context.Context, dir string) error {
		must(t, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
		return errors.New("no network")
	})
	if err == nil || isDir(filepath.Join(p.cache, "entry")) {
		t.Errorf("a failed attempt left an entry, or no error: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(p.cache, "entry.part", "half"), 0o755))

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := p.once(t.Context(), "entry", fill)
			if err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "f")); string(b) != "whole" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	wg.Wait()
	if fills.Load() != 1 {
		t.Errorf("made %d times, want once", fills.Load())
	}
	if isDir(filepath.Join(p.cache, "entry", "half")) {
		t.Error("the remains of an interrupted attempt were used")
	}
}

func TestPortsAreNotSharedBetweenSessions(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[int]bool{}
	for range 3 {
		s, err := newSession()
		must(t, err)
		defer s.close()
		for range 50 {
			port, err := s.freePort()
			must(t, err)
			if seen[port] {
				t.Fatalf("port %d was given twice", port)
			}
			seen[port] = true
		}
	}
}

func TestStateAttaches(t *testing.T) {
	c := Shared(t).ClickHouse(t)
	h := Shared(t).HBase(t)
	path := filepath.Join(t.TempDir(), "lab", "state.json")
	running := &Running{ClickHouse: c, HBase: h}
	must(t, running.State().Write(path))
	t.Setenv(EnvLab, path)
	var other Lab
	got := other.ClickHouse(t)
	if got == c || got.Version != c.Version || got.Nodes[2].TCPAddr() != c.Nodes[2].TCPAddr() || got.Shards() != 3 {
		t.Errorf("attached to %+v", got)
	}
	if v := query(t, got.Nodes[0], "SELECT 1"); v != "1" {
		t.Errorf("answer %q", v)
	}
	if other.HBase(t).Quorum() != h.Quorum() {
		t.Errorf("attached to HBase %s, want %s", other.HBase(t).Quorum(), h.Quorum())
	}
	for what, err := range map[string]error{"kill": got.Nodes[0].Kill(), "pause": got.Nodes[0].Pause(),
		"stop cluster": got.Stop(), "close port": got.Nodes[0].StopListen(t.Context(), "TCP")} {
		if !errors.Is(err, ErrShared) {
			t.Errorf("%s on a server of others: %v", what, err)
		}
	}
	// A state file that outlived its owner is no lab.
	state := running.State()
	state.StartTime = "1"
	must(t, state.Write(path))
	if _, err := ReadState(path); !errors.Is(err, ErrLabGone) {
		t.Errorf("state of a dead owner: %v", err)
	}
	if err := state.End(0); err != nil { // must not touch the process that has the id now
		t.Error(err)
	}
}
