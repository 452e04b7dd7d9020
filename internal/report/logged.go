package report

import (
	"log/slog"
	"sync"
	"time"
)

// LogInterval is the usual interval of [LogProgress].
const LogInterval = 30 * time.Second

// LogProgress writes a log line about the progress at every interval until
// stop is called, which waits for the last one. Rates are those since the line before.
func LogProgress(p *Progress, log *slog.Logger, interval time.Duration) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		m := &meter{}
		m.add(time.Now(), p.Snapshot())
		for {
			select {
			case now := <-ticker.C:
				s := p.Snapshot()
				m.add(now, s)
				log.Info("progress", attributes(s, m)...)
				m = &meter{}
				m.add(now, s)
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}

func attributes(s Snapshot, m *meter) []any {
	read, written := m.rates()
	attrs := []any{
		"phase", string(s.Phase), "elapsed", s.Elapsed.Round(time.Second).String(),
		"slices_done", s.Slices.Done, "slices_running", s.Slices.Running, "slices_total", s.Slices.Total,
		"rows_read", s.RowsRead, "rows_read_per_s", int64(read),
		"rows_received", s.ResultRows,
		"rows_written", s.RowsWritten, "rows_written_per_s", int64(written),
		"bytes_written", s.BytesWritten,
		"retries", s.SourceRetries + s.SinkRetries,
	}
	if s.SpooledBytes > 0 {
		attrs = append(attrs, "bytes_spooled", s.SpooledBytes)
	}
	if f, ok := s.Fraction(); ok {
		attrs = append(attrs, "percent", int(f*100))
	}
	if eta, ok := s.ETA(); ok {
		attrs = append(attrs, "eta", eta.Round(time.Second).String())
	}
	return attrs
}
