package job_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

func day(t *testing.T, s string) time.Time {
	t.Helper()
	d, err := job.ParseDate(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSpans(t *testing.T) {
	for _, c := range []struct{ period, date, start string }{
		{"DAY", "2026-10-31", "2026-10-31"},
		{"WEEK", "2026-10-31", "2026-10-26"}, // a Saturday
		{"WEEK", "2026-11-01", "2026-10-26"}, // a Sunday
		{"WEEK", "2026-11-02", "2026-11-02"}, // a Monday
		{"MONTH", "2024-02-29", "2024-02-01"},
		{"QUARTER", "2026-10-01", "2026-10-01"},
		{"QUARTER", "2026-12-31", "2026-10-01"},
		{"QUARTER", "2026-03-31", "2026-01-01"},
		{"YEAR", "2013-12-31", "2013-01-01"},
		{"BY_LAST_DAYS_1", "2026-10-31", "2026-10-31"},
		{"BY_LAST_DAYS_30", "2026-11-29", "2026-10-31"},
		{"BY_LAST_DAYS_3660", "1981-01-01", "1970-12-26"},
	} {
		p, err := job.ParsePeriod(c.period)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Span(day(t, c.date))
		if want := (job.Span{Period: p, Start: got.Start, End: day(t, c.date)}); got != want || got.Start.Format(time.DateOnly) != c.start {
			t.Errorf("%s on %s: %v, want from %s", c.period, c.date, got, c.start)
		}
	}
}

// TestSpanProperties: a span ends on the date, holds it, begins where its
// period says, and is the same for every day's clock and zone.
func TestSpanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)
		date := first.AddDate(0, 0, rapid.IntRange(0, 45650).Draw(t, "days"))
		n := rapid.IntRange(1, 3660).Draw(t, "n")
		name := rapid.SampledFrom([]string{"DAY", "WEEK", "MONTH", "QUARTER", "YEAR", fmt.Sprintf("BY_LAST_DAYS_%d", n)}).Draw(t, "period")
		p, err := job.ParsePeriod(name)
		if err != nil {
			t.Fatal(err)
		}
		s := p.Span(date)
		days := int(s.End.Sub(s.Start).Hours()/24) + 1
		if !s.End.Equal(date) || days < 1 || s.Start.Location() != time.UTC || s.Start.Year() < 1970 {
			t.Fatalf("%v", s)
		}
		ok := map[job.Period]bool{
			job.Day:     days == 1,
			job.Week:    days <= 7 && s.Start.Weekday() == time.Monday,
			job.Month:   s.Start.Day() == 1 && s.Start.Month() == date.Month() && days <= 31,
			job.Quarter: s.Start.Day() == 1 && s.Start.Month()%3 == 1 && days <= 92,
			job.Year:    s.Start.YearDay() == 1 && s.Start.Year() == date.Year(),
		}
		if right, fixed := ok[p]; (fixed && !right) || (!fixed && days != n) {
			t.Fatalf("%s on %s: %v, %d days", p, date, s, days)
		}
		zone := time.FixedZone("", rapid.IntRange(-14, 14).Draw(t, "zone")*3600)
		y, m, d := date.Date()
		if local := p.Span(time.Date(y, m, d, rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, zone)); local != s {
			t.Fatalf("%v with a clock, %v without", local, s)
		}
	})
}

func TestUnits(t *testing.T) {
	j := parse(t, base(t), "periods=[DAY, WEEK]", `levels=[{code: "b", dimensions: [shop_id, src]}, {code: "a", dimensions: [src]}]`)
	var got string
	for _, u := range j.Units(day(t, "2026-10-31")) {
		got += fmt.Sprintf("%d%s %s %s..%s %s; ", u.Level, u.Code, u.Period.Period, u.Period.Start.Format(time.DateOnly), u.Period.End.Format(time.DateOnly), u.Date.Format(time.DateOnly))
	}
	want := "0b DAY 2026-10-31..2026-10-31 2026-10-31; 0b WEEK 2026-10-26..2026-10-31 2026-10-31; " +
		"1a DAY 2026-10-31..2026-10-31 2026-10-31; 1a WEEK 2026-10-26..2026-10-31 2026-10-31; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestParseDateRefuses(t *testing.T) {
	for _, s := range []string{"", "2026-02-30", "20261031", "2026-10-31 ", "2026-1-1", "1980-12-31", "2106-01-01", "0000-01-01"} {
		if d, err := job.ParseDate(s); err == nil {
			t.Errorf("%q is %v", s, d)
		}
	}
}
