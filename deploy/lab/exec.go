package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/term"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// execute starts a lab, runs a command that finds it through CK2HBASE_LAB, ends
// the lab and returns the command's exit code.
func execute(ctx context.Context, args []string) (int, error) {
	opts, argv, err := parse("exec", args)
	if err != nil {
		return 2, err
	}
	if len(argv) == 0 {
		return 2, errors.New("exec: no command after --")
	}
	running, err := lab.Start(ctx, opts)
	if err != nil {
		return 1, err
	}
	code, err := runWith(running, argv)
	return code, errors.Join(err, running.Stop())
}

func runWith(running *lab.Running, argv []string) (int, error) {
	path, err := running.Publish()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), lab.EnvLab+"="+path)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	// At a terminal the command stays in the foreground group, may read, and
	// gets Ctrl-C from the terminal itself. Elsewhere it has a group of its own
	// that gets every signal from here, just once.
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	// It must not outlive this process, whose servers it uses; the kernel
	// watches the thread that forks, so that one is kept.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return 127, fmt.Errorf("exec: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return follow(cmd, terminal, signals, ended)
}

// follow passes signals on to the command until it has ended.
func follow(cmd *exec.Cmd, terminal bool, signals <-chan os.Signal, ended <-chan error) (int, error) {
	for {
		select {
		case sig := <-signals:
			s, ok := sig.(syscall.Signal)
			switch {
			case !ok:
			case !terminal:
				_ = syscall.Kill(-cmd.Process.Pid, s)
			case s != syscall.SIGINT && s != syscall.SIGQUIT:
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			return exitCode(err)
		}
	}
}

func exitCode(err error) (int, error) {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
