package hbase

import (
	"math"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
)

const (
	// paceTick is how often a pace rises, and waiting requests look again.
	paceTick = 250 * time.Millisecond
	// measureTicks are over before a rate that was measured is believed.
	measureTicks = 4
	// firstPace is the first limit in rows a second where nothing was measured yet.
	firstPace = 10_000
	// leastPace is what a server gets however often it pushes back.
	leastPace = 200
	// busyCut and slowCut are what is left of a pace after a pushback, and after
	// an answer that took long.
	busyCut, slowCut = 0.7, 0.85
	// A pace rises by 1/riseSteps of the rate at which the server was busy last,
	// each tick; the step doubles with each second without a pushback, so that a
	// server that is well again is back at its old pace in some seconds.
	riseSteps = 20
	leastStep = 50
	// freeAfter ticks without a pushback the limit is off.
	freeAfter = 40
	// An answer is slow that takes slowTimes the usual time, and slowLeast.
	slowTimes = 5
	slowLeast = 2 * time.Second
)

// A pacer finds the rate in rows a second that one region server can take:
// none until the server pushes back, then additive increase and multiplicative
// decrease. It is not safe for concurrent use.
type pacer struct {
	limit  float64 // rows a second, +Inf for none
	bucket bucket

	tick     time.Time // when the last tick was
	acked    int       // since then
	measured float64   // rows a second that were acknowledged, smoothed
	ticks    int       // with acknowledgements, that measured comes from
	quiet    int       // ticks since the last pushback
	cut      time.Time // when the pace was cut last
	ceiling  float64   // rate at which the server was busy last
	usual    time.Duration
}

func newPacer(now time.Time) *pacer {
	return &pacer{limit: math.Inf(1), tick: now}
}

// take lets rows pass, or tells how long to wait before asking again.
func (p *pacer) take(rows int, now time.Time) time.Duration {
	p.advance(now)
	if math.IsInf(p.limit, 1) {
		return 0
	}
	return min(p.bucket.take(p.limit, rows, now), paceTick)
}

// done learns from the outcome of a request.
func (p *pacer) done(o hbase.Outcome, now time.Time) {
	p.advance(now)
	p.acked += o.Acked
	slow := p.usual > 0 && o.Took > max(slowTimes*p.usual, slowLeast)
	switch {
	case o.Pushback:
		p.lower(busyCut, o.Took, now)
	case slow:
		p.lower(slowCut, o.Took, now)
	case o.Acked > 0:
		// The usual time is a slow average, in which a single answer counts little.
		if p.usual == 0 {
			p.usual = o.Took
		}
		p.usual += (o.Took - p.usual) / 32
	}
}

// lower cuts the pace once for all requests that were under way together.
func (p *pacer) lower(left float64, took time.Duration, now time.Time) {
	p.quiet = 0
	if now.Sub(p.cut) < max(paceTick, min(took, 2*time.Second)) {
		return
	}
	p.cut = now
	if math.IsInf(p.limit, 1) {
		p.limit = firstPace
		if p.ticks >= measureTicks {
			p.limit = p.measured
		}
		p.bucket = bucket{at: now}
	}
	p.ceiling = p.limit
	p.limit = max(p.limit*left, leastPace)
}

// advance does the ticks that are over.
func (p *pacer) advance(now time.Time) {
	for n := 0; now.Sub(p.tick) >= paceTick; n++ {
		if n > freeAfter { // nobody was here for long
			p.tick = now
			break
		}
		p.tick = p.tick.Add(paceTick)
		p.measure()
		p.rise()
	}
}

func (p *pacer) measure() {
	if p.acked == 0 {
		return // nothing was sent, or nothing is known yet
	}
	rate := float64(p.acked) / paceTick.Seconds()
	p.acked = 0
	p.ticks++
	p.measured += (rate - p.measured) / float64(min(p.ticks, 2*measureTicks))
}

func (p *pacer) rise() {
	if math.IsInf(p.limit, 1) {
		return
	}
	p.quiet++
	if p.quiet >= freeAfter {
		p.limit = math.Inf(1)
		return
	}
	seconds := float64(p.quiet) * paceTick.Seconds()
	p.limit += max(p.ceiling/riseSteps, leastStep) * math.Exp2(seconds)
}

// A bucket lets a rate pass, with debts: what is larger than a tick's share
// passes at once and is paid for by those who come after.
type bucket struct {
	have float64
	at   time.Time // when have was right
}

// take takes n at a rate a second, or tells how long it takes until there is
// something.
func (b *bucket) take(rate float64, n int, now time.Time) time.Duration {
	b.have = min(b.have+rate*now.Sub(b.at).Seconds(), rate*paceTick.Seconds())
	b.at = now
	if b.have < 0 {
		return time.Duration(-b.have / rate * float64(time.Second))
	}
	b.have -= float64(n)
	return 0
}
