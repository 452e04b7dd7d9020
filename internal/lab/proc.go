package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// procSpec describes a server process; the same spec starts it again.
type procSpec struct {
	name    string
	argv    []string
	dir     string // working directory
	env     []string
	logPath string // receives stdout and stderr, appended
	errLog  string // a file the server itself logs errors to, or ""
}

// proc is one running server process.
type proc struct {
	spec  procSpec
	cmd   *exec.Cmd
	stdin io.Closer     // held open for the life of the process: it stops on EOF
	done  chan struct{} // closed when the process has been reaped
	err   error         // set before done is closed
	from  int64         // size of the log before this process wrote to it
}

// startProc starts the process in a way that it cannot outlive this one: the
// kernel kills it when the thread that forked it ends, so one locked thread
// forks it and waits for it.
func startProc(spec procSpec) (*proc, error) {
	logFile, err := os.OpenFile(spec.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	defer logFile.Close()
	info, err := logFile.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	cmd := exec.Command(spec.argv[0], spec.argv[1:]...)
	cmd.Dir, cmd.Env = spec.dir, append(os.Environ(), spec.env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// A group of its own keeps Ctrl-C at the terminal from reaching the
	// servers before their owner had a chance to use them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	p := &proc{spec: spec, cmd: cmd, stdin: stdin, done: make(chan struct{}), from: info.Size()}
	started := make(chan error, 1)
	go p.forkAndWait(started)
	if err := <-started; err != nil {
		stdin.Close()
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	return p, nil
}

func (p *proc) forkAndWait(started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread must live as long as the process
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
	close(p.done)
}

func (p *proc) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *proc) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s (pid %d): %w", p.spec.name, p.cmd.Process.Pid, err)
	}
	return nil
}

// stop asks the process to end and kills it when ctx ends or grace is over.
func (p *proc) stop(ctx context.Context, grace time.Duration) error {
	if !p.running() {
		return nil
	}
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT) // a paused process would not see the SIGTERM
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	return p.kill()
}

// kill sends SIGKILL and waits until the process is gone.
func (p *proc) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// log returns what this process has written so far, without what an earlier
// one left in the same file.
func (p *proc) log() string {
	f, err := os.Open(p.spec.logPath)
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(p.from, io.SeekStart); err != nil {
		return ""
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return string(b)
}

// await polls check until it returns nil, the process ends or ctx is over; the
// error then carries the end of the log.
func (p *proc) await(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", p.spec.name, p.err, p.spec.logTail(25))
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready: %w (last: %w)\n%s", p.spec.name, ctx.Err(), last, p.spec.logTail(25))
		case <-tick.C:
		}
	}
}

// logTail returns the last lines of the server's logs.
func (s procSpec) logTail(n int) string {
	var out []string
	for _, path := range []string{s.logPath, s.errLog} {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			out = append(out, tail(string(b), n))
		}
	}
	return strings.Join(out, "\n")
}

// tail returns the last n lines of s, indented, for an error message.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "  | " + strings.Join(lines, "\n  | ")
}
