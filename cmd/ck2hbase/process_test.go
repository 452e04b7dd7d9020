package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

// A process is ck2hbase as a process of its own.
type process struct {
	j              *testJob
	cmd            *exec.Cmd
	stdout, stderr locked
	begin          time.Time
	ended          chan struct{}
	err            error
}

// start starts a command; "JOB" stands for the path of the job file.
func (j *testJob) start(args ...string) *process {
	j.t.Helper()
	p := j.prepare(args...)
	p.launch()
	return p
}

func (j *testJob) prepare(args ...string) *process {
	j.t.Helper()
	self, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	p := &process{j: j, ended: make(chan struct{})}
	args = append([]string{}, args...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "JOB", j.path)
	}
	p.cmd = exec.Command(self, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Env = append(os.Environ(), envMain+"=1")
	for name, value := range maps.All(j.env) {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p
}

func (p *process) launch() {
	p.j.t.Helper()
	p.begin = time.Now()
	if err := p.cmd.Start(); err != nil {
		p.j.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	p.j.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	})
}

func (p *process) signal(s os.Signal) {
	p.j.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.j.t.Fatal(err)
	}
}

// wait waits for the end. The code of a process that a signal ended is minus
// the signal's number.
func (p *process) wait() outcome {
	p.j.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		p.j.t.Fatalf("it does not end: %s", &p.stderr)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	code := status.ExitStatus()
	if status.Signaled() {
		code = -int(status.Signal())
	}
	o := outcome{code, p.stdout.String(), p.stderr.String(), time.Since(p.begin)}
	p.j.noSecrets(o)
	return o
}

// untilMidway waits until a slow run has written rows and its long query runs.
func (j *testJob) untilMidway() {
	j.t.Helper()
	hb := hbaseClient(j.t)
	wait(j.t, "a run that has written rows and still asks", func() bool {
		if table, err := hb.Table(j.t.Context(), j.name); err != nil || table == nil || !table.Enabled {
			return false
		}
		rows := 0
		err := hb.ScanRows(j.t.Context(), j.name, nil, func(hbase.Row) error { rows++; return nil })
		return err == nil && rows > 0 && len(j.queries()) > 0
	})
}

// queries are those of the job that run on any node of the cluster; they are
// told by the name of the job, which the jobs have in their filter.
func (j *testJob) queries() []string {
	j.t.Helper()
	return j.source.running(j.t, j.name)
}

// noQueries wants the queries of the job to be gone. A killed one notices it
// within a row or two; by itself the long one would take much longer.
func (j *testJob) noQueries() {
	j.t.Helper()
	for end := time.Now().Add(8 * time.Second); len(j.queries()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Errorf("queries are left: %q", j.queries())
			return
		}
	}
}

// published are the timestamps that readers get for the job, by date, level and period.
func (j *testJob) published() map[string]int64 {
	j.t.Helper()
	all := map[string]int64{}
	for key, p := range j.pointers() {
		all[key] = p.Since
	}
	return all
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(s.name+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				j := newSlowJob(t, s)
				p := j.start("run", "JOB", "--date", date)
				j.untilMidway()
				sent := time.Now()
				p.signal(sig)
				o := p.wait()
				took := time.Since(sent)
				if o.code != 8 || took > 10*time.Second || !strings.Contains(o.stderr, "interrupted") || !strings.Contains(o.stderr, "→ run the same command again") {
					t.Errorf("%v after the signal: %v", took, o)
				}
				j.noQueries()
				if p := j.published(); len(p) > 0 {
					t.Errorf("an interrupted run was published: %v", p)
				}
				// P5; and the lease was let go: there is nothing to wait for.
				if o := j.run(0, "--config-override", quick); strings.Contains(o.stderr, "the lease is held") {
					t.Errorf("the next run had to wait: %v", o)
				}
			})
		}
	}
}

// P5: the same command after SIGKILL takes over the lease of the dead run.
func TestP5Killed(t *testing.T) {
	t.Parallel()
	j := newSlowJob(t, modern)
	p := j.start("run", "JOB", "--date", date)
	j.untilMidway()
	p.signal(syscall.SIGKILL)
	p.wait()
	if p := j.published(); len(p) > 0 {
		t.Fatalf("a killed run was published: %v", p)
	}
	o := j.run(0, "--config-override", quick)
	if !strings.Contains(o.stderr, "gives no sign of life, taking over") {
		t.Errorf("nobody said why it waited: %v", o)
	}
	if n := len(j.cells()); n != 21 {
		t.Errorf("%d rows, want 21", n)
	}
}

// A second signal is for those who cannot wait for the first.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	servers := proxyHBase(t)
	j := newSlowJob(t, modern, "[\"QUORUM\"]\n", "[\"QUORUM\"]\n        node_map: "+servers.nodeMap()+"\n")
	p := j.start("run", "JOB", "--date", date)
	j.untilMidway()
	servers.mute() // the farewell to the ledger will take its time
	begin := time.Now()
	for running := true; running; {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.ended:
			running = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	if o := p.wait(); o.code != -int(syscall.SIGTERM) || time.Since(begin) > 3*time.Second {
		t.Errorf("%v after the first signal: %v", time.Since(begin), o)
	}
}

// A log that nobody reads any more does not end a run.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := j.prepare("run", "JOB", "--date", date)
	p.cmd.Stderr = w
	r.Close()
	p.launch()
	w.Close()
	if o := p.wait(); o.code != 0 || !strings.Contains(o.stdout, "published") {
		t.Errorf("%v", o)
	}
}
