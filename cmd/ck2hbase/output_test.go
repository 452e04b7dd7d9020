package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ck2hbase/ck2hbase/internal/report"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

func decode(t *testing.T, text string, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Errorf("there is more than one JSON value: %s", text)
	}
}

func TestRunJSON(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "periods:", "scatter: {slices: 7}\nperiods:")
	var r report.Result
	decode(t, j.run(0, "--json").stdout, &r)
	if r.Job != j.name || r.Date != date || r.State != report.Published || r.Error != nil || r.Until != r.Since+1 || r.Timestamp != r.Since {
		t.Errorf("%+v", r)
	}
	if r.Totals.RowsWritten != 120 || r.Totals.Cells != 360 || r.Totals.Bytes == 0 || len(r.Phases) != 5 {
		t.Errorf("%+v", r)
	}
	if len(r.Units) != 1 {
		t.Fatalf("%+v", r)
	}
	u := r.Units[0]
	if u.Slices != 7 || *u.SourceRows != 120 || *u.ClickHouse != 120 || *u.HBase != 120 || !u.Verified || u.Start != date || u.Level != "11" {
		t.Errorf("%+v", u)
	}
	// A failure is a result, too, whenever it comes.
	for code, override := range map[int]string{4: "metrics.pv=sum(throwIf(pv = 77))", 3: "metrics.pv=sum(pvv)"} {
		var r report.Result
		decode(t, j.run(code, "--json", "--config-override", override).stdout, &r)
		if r.State != report.Failed || r.Error == nil || r.Error.Code != code || r.Error.Message == "" || r.Error.Remedy == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestRunTable(t *testing.T) {
	t.Parallel()
	j := newJob(t, old)
	o := j.run(0)
	for _, pattern := range []string{
		"^" + j.name + "  " + date + "  published\n",
		`(?m)^  11 +DAY +2026-11-29 +2026-11-29 +3 +120 +120 +120 +yes$`,
		`written    120 rows, 360 cells, .* to hbase primary, table ` + j.name,
		`run        \d{8}t\d{6}-\w{6}`, `readers    take cells from timestamp \d+ to below \d+`,
	} {
		if !regexp.MustCompile(pattern).MatchString(o.stdout) {
			t.Errorf("the report has no %s: %v", pattern, o)
		}
	}
	// There is no terminal: the log is JSON, a value a line.
	if o.stderr == "" {
		t.Error("there is no log")
	}
	for line := range strings.Lines(o.stderr) {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" || entry.Level == "" {
			t.Errorf("not a line of a log: %q", line)
		}
	}
}

func TestLogFormat(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	o := j.run(0, "--log-format", "text")
	for line := range strings.Lines(o.stderr) {
		if !strings.HasPrefix(line, "time=") || !strings.Contains(line, " level=INFO msg=") {
			t.Errorf("not a line of text: %q", line)
		}
	}
	if o.stderr == "" {
		t.Error("there is no log")
	}
}

func TestConfigOverride(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	o := j.run(0, "--config-override", "scatter.slices=2", "--config-override", "periods=[DAY, WEEK]", "--config-override", "sink.hbase.columns={pv: p}")
	if !regexp.MustCompile(`(?m)WEEK +2026-11-23 +2026-11-29 +2 `).MatchString(o.stdout) {
		t.Errorf("%v", o)
	}
	for key, cells := range j.cells() {
		if cells["p"] == "" || cells["pv"] != "" {
			t.Fatalf("the row %q has %v", key, cells)
		}
	}
}

// plan asks ClickHouse alone and writes nothing.
func TestPlan(t *testing.T) {
	t.Parallel()
	nobody := closed(t)
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, s, "QUORUM", nobody, "periods:", "scatter: {slices: 4}\nperiods:")
			o := j.command("plan", "JOB", "--date", date)
			if o.code != 0 {
				t.Fatalf("%v", o)
			}
			for _, text := range []string{"4 slices over 120 source rows", s.Nodes[1].TCPAddr(), s.Version, "strategy hash by shop: highest cardinality of the level",
				"channel has about ", "4 slices: scatter.slices", "each slice reads the ", "the sharding key rand() is not a function of columns", "max_execution_time=600", "GROUP BY", "level 11, period DAY (2026-11-29 to 2026-11-29): 120 rows"} {
				if !strings.Contains(o.stdout, text) {
					t.Errorf("the plan has no %q: %v", text, o)
				}
			}
			var p scatter.Plan
			decode(t, j.command("plan", "JOB", "--date", date, "--json").stdout, &p)
			if p.ID != p.Hash() || len(p.Source) != 64 || len(p.Units[0].Choices) != 4 {
				t.Errorf("%+v", p)
			}
			if p.Job != j.name || len(p.Nodes) != 3 || p.Rows() != 120 || p.Slices() != 4 {
				t.Errorf("%+v", p)
			}
			var rows uint64
			lo := 0
			for _, slice := range p.Units[0].Slices {
				if rows += slice.Rows; slice.Lo != lo {
					t.Errorf("a slice begins at %d, want %d", slice.Lo, lo)
				}
				lo = slice.Hi + 1
			}
			if rows != 120 || lo != scatter.Buckets {
				t.Errorf("the slices have %d rows up to bucket %d", rows, lo)
			}
			if left := j.traces(); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
			if o := j.command("plan", "JOB", "--date", "2020-01-01"); o.code != 0 || !strings.Contains(o.stdout, "1 slices over 0 source rows") || strings.Contains(o.stdout, "NaN") {
				t.Errorf("a day without rows: %v", o)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var stdout, stderr locked
	if code := run(t.Context(), []string{"version"}, os.LookupEnv, &stdout, &stderr); code != 0 || !regexp.MustCompile(`^ck2hbase .*go1\.\d+`).MatchString(stdout.String()) {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}

func TestMetricsWhileRunning(t *testing.T) {
	t.Parallel()
	j := newSlowJob(t, modern)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr locked
	done := make(chan outcome, 1)
	go func() {
		done <- j.commandIn(ctx, &stderr, "run", "JOB", "--date", date, "--metrics-listen", "127.0.0.1:0")
	}()
	j.untilMidway()
	at := regexp.MustCompile(`"metrics are served","address":"([^"]+)"`).FindStringSubmatch(stderr.String())
	if at == nil {
		t.Fatalf("the log does not tell the address: %s", &stderr)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at[1]+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf(`ck2hbase_phase_current{mover_job=%q,phase="scatter"} 1`, j.name), `state="running"`, "ck2hbase_rows_written_total", "ck2hbase_source_rows_read_total", "go_goroutines",
	} {
		if !strings.Contains(string(body), text) {
			t.Errorf("the metrics have no %s: %s", text, body)
		}
	}
	cancel()
	if o := <-done; o.code != 8 {
		t.Errorf("%v", o)
	}
}

// terminal opens a pseudo-terminal: what is written to the terminal can be read from the master.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 160}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// On a terminal there are a live line and a log for people, and the error once.
func TestTerminal(t *testing.T) {
	t.Parallel()
	j := newSlowJob(t, modern)
	master, slave := terminal(t)
	p := j.prepare("run", "JOB", "--date", date)
	p.cmd.Stdout, p.cmd.Stderr = slave, slave
	p.launch()
	slave.Close()
	var screen locked
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&screen, master) // the terminal's end is an error
	}()
	wait(t, "the live line", func() bool { return regexp.MustCompile(`scatter.*/15`).MatchString(screen.String()) })
	p.signal(os.Interrupt)
	o := p.wait()
	<-read
	text := screen.String()
	if o.code != 8 || !strings.Contains(text, "level=INFO msg=\"creating the table\"") || !strings.Contains(text, j.name+"  "+date+"  interrupted") {
		t.Errorf("exit code %d: %q", o.code, text)
	}
	if n := strings.Count(text, "context canceled"); n != 1 {
		t.Errorf("the error is shown %d times: %q", n, text)
	}
	if strings.Contains(text, "mover-secret") {
		t.Errorf("a password shows: %q", text)
	}
}
