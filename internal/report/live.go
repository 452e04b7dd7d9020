package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A Screen is a terminal that can hold one live line at its bottom. The
// logger writes to it, so that no log line tears the live one. It is safe for
// concurrent use; every Write should hold whole lines.
type Screen struct {
	out io.Writer

	mu   sync.Mutex
	bars *mpb.Progress // nil while there is no live line
}

// NewScreen makes a screen of a terminal, most likely standard error.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Write shows lines above the live one.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars != nil {
		if n, err := s.bars.Write(b); err == nil {
			return n, nil
		}
		// The live line is gone, a message must not go with it.
	}
	return s.out.Write(b)
}

// The pace and, where the terminal does not tell its own, the width of the
// live line.
const (
	refreshEvery = 250 * time.Millisecond
	defaultWidth = 100
)

// Live shows the progress in one line until stop is called, which removes the
// line again; stop may be called more than once. There is one live line at a time.
func (s *Screen) Live(p *Progress) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Without WithAutoRefresh mpb would swallow all that is written to it where
	// it takes the output for no terminal. Whether it is one was decided before.
	bars := mpb.New(mpb.WithOutput(s.out), mpb.ForceTTY(), mpb.WithAutoRefresh(),
		mpb.WithWidth(defaultWidth), mpb.WithRefreshRate(refreshEvery))
	m := &meter{}
	bar, err := bars.Add(0, mpb.BarFillerFunc(func(w io.Writer, stat decor.Statistics) error {
		snapshot := p.Snapshot()
		m.add(time.Now(), snapshot)
		_, err := io.WriteString(w, fit(liveLine(snapshot, m), stat.AvailableWidth))
		return err
	}), mpb.BarFillerTrim())
	if err != nil {
		bars.Shutdown()
		return func() {}
	}
	s.bars = bars
	return sync.OnceFunc(func() {
		// Writers wait meanwhile: the last refresh shows what they wrote before.
		s.mu.Lock()
		defer s.mu.Unlock()
		bar.Abort(true)
		bars.Wait()
		s.bars = nil
	})
}

// liveLine is the text of the live line.
func liveLine(s Snapshot, m *meter) string {
	parts := []string{string(s.Phase)}
	if s.Slices.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d slices", s.Slices.Done, s.Slices.Total))
	}
	if f, ok := s.Fraction(); ok {
		parts = append(parts, gauge(f))
	}
	// What matters most comes first: a narrow terminal cuts the rest.
	if eta, ok := s.ETA(); ok {
		parts = append(parts, "ETA "+eta.Round(time.Second).String())
	} else {
		parts = append(parts, s.Elapsed.Round(time.Second).String())
	}
	read, written := m.rates()
	if s.RowsRead > 0 {
		parts = append(parts, "read "+count(read)+" rows/s")
	}
	if s.RowsWritten > 0 {
		parts = append(parts, "written "+count(written)+" rows/s, "+count(float64(s.RowsWritten))+" in all")
	}
	if n := s.SourceRetries + s.SinkRetries; n > 0 {
		parts = append(parts, fmt.Sprintf("%d retries", n))
	}
	return strings.Join(parts, "  ")
}

// gauge draws a fraction.
func gauge(f float64) string {
	const cells = 10
	full := int(f * cells)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + fmt.Sprintf("] %2.0f %%", f*100)
}

// fit cuts a line to a width, for a line that wraps cannot be removed.
func fit(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

// A meter tells the present pace from samples of the last seconds.
type meter struct{ samples []sample }

type sample struct {
	at            time.Time
	read, written int64
}

// The window of a meter.
const (
	sampleEvery = time.Second
	sampleCount = 10
)

func (m *meter) add(now time.Time, s Snapshot) {
	next := sample{now, s.RowsRead, s.RowsWritten}
	n := len(m.samples)
	// The last sample moves with the time until it is a second from the one before.
	if n > 1 && m.samples[n-1].at.Sub(m.samples[n-2].at) < sampleEvery {
		m.samples[n-1] = next
		return
	}
	m.samples = append(m.samples, next)
	if len(m.samples) > sampleCount+1 {
		m.samples = m.samples[1:]
	}
}

// rates are rows a second, read and written.
func (m *meter) rates() (read, written float64) {
	if len(m.samples) < 2 {
		return 0, 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(last.read-first.read) / seconds, float64(last.written-first.written) / seconds
}

// count shows a number in three or four digits: 999, 1.2 k, 34.5 M.
func count(n float64) string {
	for _, unit := range []string{"", " k", " M", " G"} {
		if n < 999.5 {
			if unit == "" {
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprintf("%.1f%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1f T", n)
}
