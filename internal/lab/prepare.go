package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Needs says which servers somebody is about to start.
type Needs struct {
	ClickHouse    bool // 26.9
	OldClickHouse bool // 18.16
	HBase         bool // HBase and ZooKeeper
	Flights       bool // the flights data set
}

// Prepare downloads and checks what the named servers need, so that a later
// start is fast. It is quick when the cache holds them, safe to run in several
// processes at once and to interrupt. Missing programs (Java, Maven, Python)
// are installed by apt when the user is root; otherwise the error says what to
// install. Progress goes to log, or to standard error when log is nil.
func Prepare(ctx context.Context, needs Needs, log *slog.Logger) error {
	p, err := newPreparer(log)
	if err != nil {
		return err
	}
	steps := []struct {
		wanted bool
		run    func(context.Context) error
	}{
		{needs.ClickHouse, dropResult(p.chdb)},
		{needs.OldClickHouse, dropResult(p.oldClickHouse)},
		{needs.HBase, func(ctx context.Context) error { _, err := p.hbase(ctx); return err }},
		{needs.Flights, dropResult(p.flights)},
	}
	// At once: the downloads wait for different servers. The first failure
	// ends the others.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, s := range steps {
		if s.wanted {
			wg.Go(func() {
				if err := s.run(ctx); err != nil {
					cancel(err)
				}
			})
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

func dropResult(f func(context.Context) (string, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := f(ctx); return err }
}

// preparer fills the cache.
type preparer struct {
	cache string
	log   *slog.Logger
}

func newPreparer(log *slog.Logger) (*preparer, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return &preparer{cache: cache, log: orStderr(log)}, nil
}

func orStderr(log *slog.Logger) *slog.Logger {
	if log != nil {
		return log
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// once makes the cache entry `name` by calling fill with an empty directory,
// unless it is there. An entry appears whole by one rename or not at all, and
// a lock keeps two processes from making it at the same time. It returns the
// entry's path.
func (p *preparer) once(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	final := filepath.Join(p.cache, name)
	if isDir(final) {
		return final, nil
	}
	unlock, err := p.lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(final) { // made by the one we waited for
		return final, nil
	}
	work := final + ".part"
	if err := os.RemoveAll(work); err != nil { // of an interrupted attempt
		return "", fmt.Errorf("prepare %s: %w", name, err)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", fmt.Errorf("prepare %s: %w", name, err)
	}
	if err := fill(ctx, work); err != nil {
		return "", errors.Join(fmt.Errorf("prepare %s: %w", name, err), os.RemoveAll(work))
	}
	if err := os.Rename(work, final); err != nil {
		return "", fmt.Errorf("prepare %s: %w", name, err)
	}
	return final, nil
}

// lock takes the named lock of the cache, waiting for other processes.
func (p *preparer) lock(ctx context.Context, name string) (unlock func(), err error) {
	dir := filepath.Join(p.cache, "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	for said := false; ; said = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
		}
		if !said {
			p.log.Info("waiting for another process that prepares the same", "what", name)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, ctx.Err()), f.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run executes one step's command, says that it started, every five seconds
// that it goes on, and how long it took. The error holds the end of its output.
func (p *preparer) run(ctx context.Context, what string, env []string, argv ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	start := time.Now()
	p.log.Info(what)
	stop := make(chan struct{})
	defer close(stop)
	go p.heartbeat(what, start, stop)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, tail(out.String(), 15))
	}
	p.log.Info(what+": done", "took", time.Since(start).Round(100*time.Millisecond))
	return nil
}

func (p *preparer) heartbeat(what string, start time.Time, stop <-chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.log.Info(what+": still at it", "for", time.Since(start).Round(time.Second))
		}
	}
}

// retry repeats a step that needs the network, three times with growing pauses.
// A wrong hash is not repeated: it will not get better.
func (p *preparer) retry(ctx context.Context, step func() error) error {
	policy := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Second), backoff.WithMaxInterval(20*time.Second)), 3), ctx)
	return backoff.RetryNotify(func() error {
		err := step()
		if err != nil && (errors.Is(err, errHash) || strings.Contains(err.Error(), "DO NOT MATCH THE HASHES")) {
			return backoff.Permanent(fmt.Errorf("%w: %w", errHash, err))
		}
		return err
	}, policy, func(err error, wait time.Duration) {
		p.log.Warn("failed, trying again", "in", wait.Round(time.Second), "error", err)
	})
}

// errHash marks a download that is not what this repository pinned.
var errHash = errors.New("the download does not have the pinned hash")

// fileSHA256 returns the SHA-256 of a file in hexadecimal.
func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
