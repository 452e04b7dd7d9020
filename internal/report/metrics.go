package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// Build says which program runs.
type Build struct {
	Version, Revision, Go string
}

// Registry makes a Prometheus registry of its own with the run's counters,
// read whenever they are asked for, and those of the process. Every metric of
// the run is named ck2hbase_… and has the label mover_job (the label job is
// Prometheus's own).
func Registry(p *Progress, job string, build Build) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		newCollector(p, job, build),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// A collector turns a Progress into metrics.
type collector struct {
	progress *Progress
	build    Build
	counters []counter

	buildInfo, phaseSeconds, phaseCurrent, slices, retries, lastSuccess *prometheus.Desc
}

type counter struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Snapshot) int64
}

func newCollector(p *Progress, job string, build Build) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ck2hbase_"+name, help, labels, prometheus.Labels{"mover_job": job})
	}
	c := &collector{
		progress: p, build: build,
		buildInfo:    desc("build_info", "The running program; always 1.", "version", "revision", "go_version"),
		phaseSeconds: desc("phase_seconds", "Time spent in a phase of the run, the present one included.", "phase"),
		phaseCurrent: desc("phase_current", "1 for the phase under way.", "phase"),
		slices:       desc("slices", "Slices of the present phase by state.", "state"),
		retries:      desc("retries_total", "Attempts after the first: of slices (source) and of batches (sink).", "side"),
		lastSuccess:  desc("last_success_timestamp_seconds", "When a run was last published; absent before."),
	}
	total := prometheus.CounterValue
	c.counters = []counter{
		{desc("source_rows_estimated", "Rows the servers are expected to read."), prometheus.GaugeValue, func(s Snapshot) int64 { return s.EstimatedRows }},
		{desc("source_rows_read_total", "Rows the servers read."), total, func(s Snapshot) int64 { return s.RowsRead }},
		{desc("source_bytes_read_total", "Uncompressed bytes the servers read."), total, func(s Snapshot) int64 { return s.BytesRead }},
		{desc("result_rows_total", "Result rows that reached the mover."), total, func(s Snapshot) int64 { return s.ResultRows }},
		{desc("rows_written_total", "Rows the sink acknowledged."), total, func(s Snapshot) int64 { return s.RowsWritten }},
		{desc("cells_written_total", "Cells the sink acknowledged."), total, func(s Snapshot) int64 { return s.CellsWritten }},
		{desc("bytes_written_total", "Bytes of keys, qualifiers and values the sink acknowledged."), total, func(s Snapshot) int64 { return s.BytesWritten }},
		{desc("sink_pushbacks_total", "Requests that a region server refused because it was busy."), total, func(s Snapshot) int64 { return s.SinkPushbacks }},
		{desc("sink_pace_rows", "Rows a second to which the slowest region server is limited at present, because it was busy; 0 is no limit."), prometheus.GaugeValue, func(s Snapshot) int64 { return s.SinkPace }},
		{desc("spooled_bytes_total", "Bytes of rows written to the spool on disk, where they wait for the sink."), total, func(s Snapshot) int64 { return s.SpooledBytes }},
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.buildInfo, c.phaseSeconds, c.phaseCurrent, c.slices, c.retries, c.lastSuccess} {
		ch <- d
	}
	for _, counter := range c.counters {
		ch <- counter.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.progress.Snapshot()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.buildInfo, 1, c.build.Version, c.build.Revision, c.build.Go)
	seconds := map[Phase]float64{}
	for _, p := range s.Phases {
		seconds[p.Phase] += p.Seconds
	}
	for phase, v := range seconds {
		gauge(c.phaseSeconds, v, string(phase))
	}
	if s.Phase != "" {
		gauge(c.phaseCurrent, 1, string(s.Phase))
	}
	gauge(c.slices, float64(s.Slices.Waiting()), "waiting")
	gauge(c.slices, float64(s.Slices.Running), "running")
	gauge(c.slices, float64(s.Slices.Done), "done")
	ch <- prometheus.MustNewConstMetric(c.retries, prometheus.CounterValue, float64(s.SourceRetries), "source")
	ch <- prometheus.MustNewConstMetric(c.retries, prometheus.CounterValue, float64(s.SinkRetries), "sink")
	if s.LastSuccess > 0 {
		gauge(c.lastSuccess, float64(s.LastSuccess))
	}
	for _, counter := range c.counters {
		ch <- prometheus.MustNewConstMetric(counter.desc, counter.kind, float64(counter.value(s)))
	}
}

// A MetricsServer answers /metrics.
type MetricsServer struct {
	// Addr is the address it listens on, with the port the system chose for :0.
	Addr   string
	server *http.Server
	ended  chan struct{}
}

// Listen serves the registry's metrics under /metrics at host:port until
// Close. An address that cannot be listened on is a [failure.Usage].
func Listen(ctx context.Context, address string, g prometheus.Gatherer, log *slog.Logger) (*MetricsServer, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, failure.New(failure.Usage, fmt.Errorf("--metrics-listen %s: %w", address, plain(err)), listenRemedy(err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}))
	m := &MetricsServer{
		Addr:   listener.Addr().String(),
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)},
		ended:  make(chan struct{}),
	}
	go func() {
		defer close(m.ended)
		if err := m.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are no longer served", "address", m.Addr, "error", err)
		}
	}()
	return m, nil
}

// plain leaves out what the message says anyway.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

func listenRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there, perhaps another run: choose another address, or port 0 for any free one"
	case errors.Is(err, syscall.EACCES):
		return "choose a port from 1024 on"
	}
	return "write host:port, as :9464 or 127.0.0.1:9464"
}

// Close lets requests under way finish, for a second at most, and stops.
func (m *MetricsServer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := m.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = m.server.Close() // somebody who reads slowly is no reason to wait or to complain
	}
	<-m.ended
	return err
}
