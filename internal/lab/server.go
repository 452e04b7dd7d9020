package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// ErrShared is returned by everything that would disturb a server which other
// tests or processes use too. Start a private one with [StartClickHouse] or
// [StartHBase].
var ErrShared = errors.New("the server is shared: start a private one to break it")

// ErrUnsupported is returned for what a server version cannot do.
var ErrUnsupported = errors.New("not supported by this server version")

// Server controls one server process. All methods are safe for concurrent use.
type Server struct {
	// Name tells the server apart in logs and errors, as in "clickhouse-1".
	Name string

	spec   procSpec
	ready  func(ctx context.Context, p *proc) error
	grace  time.Duration // how long a clean stop may take
	shared bool          // owned by another process, or used by other tests
	pid    int           // of an attached server

	mu  sync.Mutex
	cur *proc
}

// start runs the process and waits until it serves.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(ctx)
}

func (s *Server) startLocked(ctx context.Context) error {
	p, err := startProc(s.spec)
	if err != nil {
		return err
	}
	s.cur = p
	err = p.await(ctx, func(ctx context.Context) error { return s.ready(ctx, p) })
	if err != nil {
		return errors.Join(err, p.kill())
	}
	return nil
}

// with runs f under the lock, on a server that may be disturbed.
func (s *Server) with(what string, f func(p *proc) error) error {
	if s.shared {
		return fmt.Errorf("%s %s: %w", what, s.Name, ErrShared)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		return fmt.Errorf("%s %s: never started", what, s.Name)
	}
	return f(s.cur)
}

// Stop ends the server cleanly; SIGKILL follows after a grace period or when
// ctx ends. Data stay; Restart brings it back. Stopping twice is no error.
func (s *Server) Stop(ctx context.Context) error {
	return s.with("stop", func(p *proc) error { return p.stop(ctx, s.grace) })
}

// Kill ends the server with SIGKILL and returns when it is gone.
func (s *Server) Kill() error {
	return s.with("kill", func(p *proc) error { return p.kill() })
}

// Pause freezes the server with SIGSTOP: its ports stay open, nothing answers.
func (s *Server) Pause() error {
	return s.with("pause", func(p *proc) error { return p.signal(syscall.SIGSTOP) })
}

// Resume lets a paused server go on.
func (s *Server) Resume() error {
	return s.with("resume", func(p *proc) error { return p.signal(syscall.SIGCONT) })
}

// Restart starts the server again on the same ports and data, after stopping
// it if it still runs, and returns when it serves.
func (s *Server) Restart(ctx context.Context) error {
	return s.with("restart", func(p *proc) error {
		if err := p.stop(ctx, s.grace); err != nil {
			return err
		}
		return s.startLocked(ctx)
	})
}

// Running tells whether the process exists; a paused one does.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur != nil && s.cur.running()
}

// PID is the process id of the server's last start.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		return s.pid
	}
	return s.cur.cmd.Process.Pid
}

// LogTail returns the last n lines of each of the server's logs, for failure
// messages; "" for a server of another process.
func (s *Server) LogTail(n int) string { return s.spec.logTail(n) }

// discard kills the process without ceremony: its data are about to go.
func (s *Server) discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil || !s.cur.running() {
		return nil
	}
	return s.cur.kill()
}
