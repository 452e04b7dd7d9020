package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The periods; a rolling one is BY_LAST_DAYS_n.
const (
	Day        Period = "DAY"
	Week       Period = "WEEK"
	Month      Period = "MONTH"
	Quarter    Period = "QUARTER"
	Year       Period = "YEAR"
	lastDays          = "BY_LAST_DAYS_"
	maxDays           = 3660
	dateLayout        = time.DateOnly
)

// ParsePeriod reads a period's name. BY_LAST_DAYS_n takes n from 1 to 3660,
// without leading zeros, so that one period has one name.
func ParsePeriod(s string) (Period, error) {
	p := Period(s)
	switch p {
	case Day, Week, Month, Quarter, Year:
		return p, nil
	}
	if _, ok := p.days(); ok {
		return p, nil
	}
	if strings.HasPrefix(s, lastDays) {
		return "", fmt.Errorf("period %q: n of %sn is a whole number from 1 to %d without leading zeros", s, lastDays, maxDays)
	}
	known := []string{string(Day), string(Week), string(Month), string(Quarter), string(Year), lastDays + "30"}
	return "", fmt.Errorf("unknown period %q%s", s, didYouMean(s, known))
}

// days is n of BY_LAST_DAYS_n.
func (p Period) days() (int, bool) {
	digits, ok := strings.CutPrefix(string(p), lastDays)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxDays || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// Span resolves the period for a business date, of which only year, month and
// day count. Every span ends on the date: WEEK begins on the Monday on or
// before it, MONTH, QUARTER and YEAR on their first day, and BY_LAST_DAYS_n
// holds n days. The span of a period that [ParsePeriod] refuses is that of DAY.
func (p Period) Span(date time.Time) Span {
	year, month, day := date.Date()
	end := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	start := end
	switch p {
	case Week:
		// Weekday counts from Sunday; Monday is 0 here.
		start = end.AddDate(0, 0, -(int(end.Weekday())+6)%7)
	case Month:
		start = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	case Quarter:
		start = time.Date(year, month-(month-1)%3, 1, 0, 0, 0, 0, time.UTC)
	case Year:
		start = time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)
	default:
		if n, ok := p.days(); ok {
			start = end.AddDate(0, 0, 1-n)
		}
	}
	return Span{Period: p, Start: start, End: end}
}

// The business dates that every supported server's Date type can hold,
// whatever the period: 3660 days before the first is still after 1970.
const (
	firstYear = 1981
	lastYear  = 2105
)

// ParseDate reads a business date in the form 2026-10-31, from 1981 to 2105,
// as midnight UTC of that day.
func ParseDate(s string) (time.Time, error) {
	date, err := time.Parse(dateLayout, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a date; write it as 2026-10-31", s)
	}
	if date.Year() < firstYear || date.Year() > lastYear {
		return time.Time{}, fmt.Errorf("the date %s is outside %d to %d", s, firstYear, lastYear)
	}
	return date, nil
}

// Units are all levels over all periods on a business date, in the job file's
// order, levels first.
func (j *Job) Units(date time.Time) []Unit {
	units := make([]Unit, 0, len(j.Levels)*len(j.Periods))
	for i, level := range j.Levels {
		for _, p := range j.Periods {
			span := p.Span(date)
			units = append(units, Unit{Level: i, Code: level.Code, Period: span, Date: span.End})
		}
	}
	return units
}
