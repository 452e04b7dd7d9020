package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// superviseCommand is the hidden command of the process that `up` leaves
// behind: it owns the servers, which end with it.
const superviseCommand = "supervise"

func up(ctx context.Context, args []string) (int, error) {
	opts, rest, err := parse("up", args)
	if err != nil {
		return 2, err
	}
	if len(rest) > 0 {
		return 2, fmt.Errorf("up: unexpected %q", rest[0])
	}
	path, err := lab.DefaultStatePath()
	if err != nil {
		return 1, err
	}
	if state, err := lab.ReadState(path); err == nil {
		show(os.Stdout, state, path)
		return 1, errors.New("a lab is up already: end it with `lab down`")
	}
	// Here, in the foreground, so that Ctrl-C stops a download.
	if err := lab.Prepare(ctx, needs(opts), opts.Log); err != nil {
		return 1, err
	}
	state, err := launch(ctx, args, path)
	if err != nil {
		return 1, err
	}
	show(os.Stdout, state, path)
	return 0, nil
}

// launch starts the supervisor in a session of its own, shows its log until it
// is ready, and returns its state.
func launch(ctx context.Context, args []string, path string) (*lab.State, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(filepath.Dir(path), "lab.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{superviseCommand, path}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	show, err := os.Open(log.Name())
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	defer show.Close()
	for {
		if _, err := io.Copy(os.Stderr, show); err != nil {
			return nil, errors.Join(err, cmd.Process.Kill())
		}
		if state, err := lab.ReadState(path); err == nil && state.PID == cmd.Process.Pid {
			return state, nil
		}
		select {
		case err := <-ended:
			_, _ = io.Copy(os.Stderr, show)
			return nil, fmt.Errorf("the servers did not start: %w", err)
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return nil, errors.Join(ctx.Err(), <-ended)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// supervise starts the servers, writes the state and waits to be ended.
func supervise(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("supervise is for `lab up`")
	}
	path := args[0]
	opts, _, err := parse(superviseCommand, args[1:])
	if err != nil {
		return 2, err
	}
	running, err := lab.Start(ctx, opts)
	if err != nil {
		return 1, err
	}
	if err := running.State().Write(path); err != nil {
		return 1, errors.Join(err, running.Stop())
	}
	<-ctx.Done()
	return 0, errors.Join(running.Stop(), os.Remove(path))
}

func down(_ context.Context, args []string) (int, error) {
	if len(args) > 0 {
		return 2, fmt.Errorf("down: unexpected %q", args[0])
	}
	path, err := lab.DefaultStatePath()
	if err != nil {
		return 1, err
	}
	state, err := lab.ReadState(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(os.Stderr, "no lab is up")
		return 0, nil
	case errors.Is(err, lab.ErrLabGone):
		return 0, os.Remove(path)
	case err != nil:
		return 1, err
	}
	if err := state.End(30 * time.Second); err != nil {
		return 1, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 1, err
	}
	fmt.Fprintln(os.Stderr, "the lab is down")
	return 0, nil
}
