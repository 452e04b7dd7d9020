package hbase

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

// fakeServer takes a number of rows a second into a buffer, and pushes back when
// that is full, as a region does whose memstore cannot be flushed as fast as it
// is filled.
type fakeServer struct {
	capacity, buffer, held float64
	at                     time.Time
}

func (f *fakeServer) put(rows int) hbase.Outcome {
	now := time.Now()
	f.held = max(0, f.held-f.capacity*now.Sub(f.at).Seconds())
	f.at = now
	o := hbase.Outcome{Rows: rows, Took: 10 * time.Millisecond}
	if f.held+float64(rows) > f.buffer {
		o.Pushback = true
		return o
	}
	f.held += float64(rows)
	o.Acked = rows
	return o
}

// drive sends requests of 500 rows one after another for some seconds, at most
// 200 a second, and gives the rows acknowledged a second and the pushbacks.
func drive(t *testing.T, v *valve, f *fakeServer, seconds int) (rate float64, pushbacks int) {
	t.Helper()
	acked := 0
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for time.Now().Before(end) {
		if _, err := v.Open(t.Context(), "s", 500); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		o := f.put(500)
		v.Done("s", o)
		acked += o.Acked
		if o.Pushback {
			pushbacks++
		}
	}
	return float64(acked) / float64(seconds), pushbacks
}

// open is a gate that lets everything pass.
func open(context.Context) (until time.Time, err error) { return until, nil }

// TestPaceFollowsTheServer: a server that pushes back gets what it can take
// and little more, and one that is well again its full rate within seconds.
func TestPaceFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newValve(4, open)
		f := &fakeServer{capacity: 200_000, buffer: 50_000, at: time.Now()}
		if rate, pushbacks := drive(t, v, f, 5); rate < 95_000 || pushbacks > 0 || v.pace() != 0 {
			t.Errorf("unhindered: %.0f rows/s, %d pushbacks, pace %d", rate, pushbacks, v.pace())
		}
		f.capacity = 5_000
		drive(t, v, f, 20) // fills the buffer and finds the rate
		rate, pushbacks := drive(t, v, f, 60)
		if rate < 4_000 || pushbacks > 60*8 || v.pace() == 0 || v.pace() > 40_000 {
			t.Errorf("busy: %.0f rows/s of 5000, %d pushbacks in a minute, pace %d", rate, pushbacks, v.pace())
		}
		f.capacity = 200_000
		drive(t, v, f, 8)
		if rate, _ := drive(t, v, f, 2); rate < 80_000 {
			t.Errorf("well again for 8 seconds: %.0f rows/s", rate)
		}
	})
}

// TestFirstPace: a pushback right at the start is no measure of the server.
func TestFirstPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Now())
		p.done(hbase.Outcome{Acked: 10, Rows: 10, Took: time.Millisecond}, time.Now())
		time.Sleep(paceTick)
		p.done(hbase.Outcome{Rows: 500, Pushback: true, Took: time.Millisecond}, time.Now())
		if p.limit != firstPace*busyCut {
			t.Errorf("limit %.0f", p.limit)
		}
		for range 100 { // however often: a floor remains
			time.Sleep(paceTick)
			p.done(hbase.Outcome{Rows: 500, Pushback: true, Took: time.Millisecond}, time.Now())
		}
		if p.limit < leastPace || p.limit > 2*leastPace {
			t.Errorf("limit %.0f after many pushbacks", p.limit)
		}
		time.Sleep(11 * time.Second)
		p.take(1, time.Now())
		if !math.IsInf(p.limit, 1) {
			t.Errorf("limit %.0f after 11 quiet seconds", p.limit)
		}
	})
}

// TestSlowAnswers lower the pace without a word of the server.
func TestSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Now())
		for range 20 {
			time.Sleep(paceTick)
			p.done(hbase.Outcome{Acked: 1000, Rows: 1000, Took: 50 * time.Millisecond}, time.Now())
		}
		p.done(hbase.Outcome{Acked: 1000, Rows: 1000, Took: 3 * time.Second}, time.Now())
		if p.limit > 4000*slowCut+1 || p.limit < 3000 { // 1000 rows in 250 ms
			t.Errorf("limit %.0f", p.limit)
		}
	})
}
