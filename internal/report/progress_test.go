package report_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/report"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &report.Progress{}
		p.Begin(report.Plan)
		time.Sleep(2 * time.Second)
		p.Begin(report.Scatter)
		p.PlanSlices(4)
		p.Estimate(1000, 0)
		p.SliceBegun()
		p.SliceBegun()
		p.SliceBegun()
		p.SliceDone()
		p.SliceFailed()
		p.Read(500, 9000)
		p.Written(7, 21, 300)
		p.SourceRetried()
		time.Sleep(10 * time.Second)
		s := p.Snapshot()
		want := report.Snapshot{
			Phase: report.Scatter, Elapsed: 10 * time.Second,
			Phases:        []report.PhaseTime{{Phase: report.Plan, Seconds: 2}, {Phase: report.Scatter, Seconds: 10}},
			Slices:        report.Slices{Total: 4, Running: 1, Done: 1},
			EstimatedRows: 1000, RowsRead: 500, BytesRead: 9000, RowsWritten: 7, CellsWritten: 21, BytesWritten: 300, SourceRetries: 1,
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f, ok := s.Fraction(); f != 0.5 || !ok {
			t.Errorf("fraction %v, %v", f, ok)
		}
		if eta, ok := s.ETA(); eta != 10*time.Second || !ok {
			t.Errorf("ETA %v, %v", eta, ok)
		}
		if s.Slices.Waiting() != 2 {
			t.Errorf("%d slices wait", s.Slices.Waiting())
		}
		p.End()
		p.End()
		if s := p.Snapshot(); s.Phase != "" || len(s.Phases) != 2 {
			t.Errorf("after the end: %+v", s)
		}
	})
}

// TestFractionStaysBelowOne: estimates may be too low, the end is not shown before it.
func TestFractionStaysBelowOne(t *testing.T) {
	p := &report.Progress{}
	p.Begin(report.Scatter)
	p.PlanSlices(2)
	p.Estimate(10, 0)
	p.Read(5000, 0)
	if f, _ := p.Snapshot().Fraction(); f >= 1 {
		t.Errorf("%v with no slice done", f)
	}
	for range 2 {
		p.SliceBegun()
		p.SliceDone()
	}
	if f, _ := p.Snapshot().Fraction(); f != 1 {
		t.Errorf("%v with all slices done", f)
	}
}

func TestLogProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &report.Progress{}
		p.Begin(report.Scatter)
		p.PlanSlices(10)
		stop := report.LogProgress(p, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})), report.LogInterval)
		for i := range 4 {
			p.SliceBegun()
			p.SliceDone()
			p.Read(int64(3_000_000*(i+1)), 1)
			p.Received(1000)
			p.Written(900, 1800, 40_000)
			time.Sleep(19 * time.Second)
		}
		stop()
		stop()
		golden(t, "testdata/progress.log", out.String())
	})
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// lockedBuffer is a terminal that remembers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// terminal plays what was written to it: text, line feeds, and "up n and clear
// to the end of the screen".
func terminal(t *testing.T, written string) string {
	t.Helper()
	lines := []string{""}
	up := regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`)
	for written != "" {
		if m := up.FindStringSubmatch(written); m != nil {
			var n int
			if _, err := fmt.Sscan(m[1], &n); err != nil {
				t.Fatal(err)
			}
			lines = append(lines[:max(0, len(lines)-1-n)], "")
			written = written[len(m[0]):]
			continue
		}
		if written[0] == '\n' {
			lines = append(lines, "")
		} else {
			lines[len(lines)-1] += written[:1]
		}
		written = written[1:]
	}
	return strings.Join(lines, "\n")
}

// TestLiveLine: log lines written meanwhile are all there, whole and in their
// order, the live line is below them, and in the end it is gone.
func TestLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &lockedBuffer{}
		screen := report.NewScreen(out)
		log := slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
		p := &report.Progress{}
		log.Info("before")
		stop := screen.Live(p)
		p.Begin(report.Scatter)
		p.PlanSlices(5)
		p.Estimate(90_000_000, 0)
		for range 3 {
			p.SliceBegun()
			time.Sleep(10*time.Second + time.Millisecond)
			p.Read(20_000_000, 1)
			p.Written(50_000, 1, 1)
			p.SliceDone()
			log.Info("slice done")
		}
		p.SinkRetried()
		time.Sleep(time.Second)
		shown := terminal(t, out.String())
		log.Info("last words")
		stop()
		stop()
		log.Info("after")
		golden(t, "testdata/live.txt", shown+"\n--- after the end:\n"+terminal(t, out.String()))
	})
}

// TestLiveLineAndManyLoggers: nothing is lost or torn when many write at once.
func TestLiveLineAndManyLoggers(t *testing.T) {
	out := &lockedBuffer{}
	screen := report.NewScreen(out)
	stop := screen.Live(&report.Progress{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				fmt.Fprintf(screen, "line %d of %d\n", j, i)
			}
		})
	}
	time.AfterFunc(time.Millisecond, stop)
	wg.Wait()
	stop()
	shown := terminal(t, out.String())
	for i := range 8 {
		for j := range 200 {
			if line := fmt.Sprintf("line %d of %d\n", j, i); !strings.Contains(shown, line) {
				t.Fatalf("lost: %s", line)
			}
		}
	}
	if n := strings.Count(shown, "\n"); n != 1600 {
		t.Errorf("%d lines, want 1600", n)
	}
}

func TestProgressIsSafeForConcurrentUse(t *testing.T) {
	p := &report.Progress{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stop := report.LogProgress(p, slog.New(slog.DiscardHandler), time.Millisecond)
	defer stop()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				p.Begin(report.Scatter)
				p.AddSlices(1)
				p.SliceBegun()
				p.Read(1, 1)
				p.Received(1)
				p.Written(1, 1, 1)
				p.SinkRetried()
				p.SliceDone()
				p.Succeeded(time.Now())
				p.End()
			}
		})
	}
	wg.Wait()
}
