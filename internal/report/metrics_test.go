package report_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &report.Progress{}
		r := report.Registry(p, "shop", report.Build{Version: "v1.2.3", Revision: "abc", Go: "go1.26"})
		p.Begin(report.Plan)
		time.Sleep(2 * time.Second)
		p.Begin(report.Scatter)
		time.Sleep(5 * time.Second)
		p.PlanSlices(5)
		p.SliceBegun()
		p.SliceBegun()
		p.SliceDone()
		p.Estimate(1000, 0)
		p.Read(10, 100)
		p.Received(9)
		p.Written(8, 16, 80)
		p.SourceRetried()
		p.SinkRetried()
		p.SinkRetried()
		p.SinkPushedBack(5)
		p.SinkPaced(700)
		p.Succeeded(time.Unix(1795910400, 0))
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "ck2hbase_") {
				continue // of the process
			}
			if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
				t.Fatal(err)
			}
		}
		golden(t, "testdata/metrics.txt", out.String())
	})
}

func TestListen(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	r := report.Registry(&report.Progress{}, "shop", report.Build{})
	server, err := report.Listen(t.Context(), "127.0.0.1:0", r, log)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + server.Addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if !strings.Contains(string(body), `ck2hbase_rows_written_total{mover_job="shop"} 0`) || !strings.Contains(string(body), "go_goroutines") {
		t.Errorf("status %s:\n%s", response.Status, body)
	}

	_, err = report.Listen(t.Context(), server.Addr, r, log)
	if err == nil || failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), "address already in use") || failure.Remedy(err) == "" {
		t.Errorf("the same address again: %v", err)
	}
	if _, err := report.Listen(t.Context(), "nonsense", r, log); failure.ClassOf(err) != failure.Usage {
		t.Errorf("nonsense: %v", err)
	}

	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get("http://" + server.Addr + "/metrics"); err == nil {
		t.Error("it still answers")
	}
}
