package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A SIGHUP makes a run read its rate again, and does not end it.
func TestHangupReadsTheRate(t *testing.T) {
	t.Parallel()
	j := newSlowJob(t, modern)
	p := j.start("run", "JOB", "--date", date)
	j.untilMidway()
	p.signal(syscall.SIGHUP)
	for end := time.Now().Add(30 * time.Second); !strings.Contains(p.stderr.String(), "the job file was read again"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the signal was not heard: %s", p.stderr.String())
		}
	}
	p.signal(syscall.SIGTERM)
	if o := p.wait(); o.code != 8 {
		t.Errorf("%v", o)
	}
}

// Only the rate is taken from the file, and nothing from one that is wrong.
func TestReload(t *testing.T) {
	text, err := os.ReadFile("../../internal/job/testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "job.yaml")
	var got []job.Rate
	var log strings.Builder
	f := common{app: &app{env: os.LookupEnv}}
	for _, rate := range []string{"", "    rate: {rows: 20000, bytes: 5MB}\n", "    rate: {rows: many}\n"} {
		if err := os.WriteFile(path, append(text, rate...), 0o600); err != nil {
			t.Fatal(err)
		}
		f.reload(path, func(r job.Rate) { got = append(got, r) }, slog.New(slog.NewTextHandler(&log, nil)))
	}
	if len(got) != 2 || got[0] != (job.Rate{}) || got[1] != (job.Rate{Rows: 20000, Bytes: 5_000_000}) {
		t.Errorf("rates %+v\n%s", got, &log)
	}
	if !strings.Contains(log.String(), "is wrong: the rate stays") {
		t.Errorf("the wrong file is not reported:\n%s", &log)
	}
}
