package main

import (
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/report"
)

// What is served as metrics is the mover's own: the HBase client registers
// metrics of its own with Prometheus's default registry when it is linked.
func TestMetricsAreOurOwn(t *testing.T) {
	families, err := report.Registry(new(report.Progress), "job", build()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) == 0 {
		t.Error("no metrics")
	}
	for _, f := range families {
		if name := f.GetName(); !strings.HasPrefix(name, "ck2hbase_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("the metric %s is served", name)
		}
	}
}
