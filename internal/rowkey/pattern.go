package rowkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// patternMarks may stand between the parts of a date.
const patternMarks = "-/._ "

// patternParts are the parts of a date; a pattern has each of them once, so
// that it tells any two days apart.
var patternParts = []string{"yyyy", "MM", "dd"}

// firstDay and lastDay are the days of the years 0 to 9999, counted from
// 1970-01-01.
const (
	firstDay = -719528
	lastDay  = 2932896
)

// isPattern says that a form looks like a pattern of a date.
func isPattern(form string) bool {
	return strings.ContainsAny(form, "yMd") && strings.Trim(form, "yMdHhmsS:"+patternMarks) == ""
}

func checkPattern(pattern string) error {
	rest := pattern
	for _, p := range patternParts {
		before, after, ok := strings.Cut(rest, p)
		if !ok {
			return fmt.Errorf("a date needs yyyy, MM and dd in a row key; %s is missing", p)
		}
		rest = before + "-" + after
	}
	if strings.Trim(rest, patternMarks) != "" {
		return errors.New("a date has yyyy, MM and dd once each, and one of - / . _ or a space between them")
	}
	return nil
}

// appendPattern writes a day of the years 0 to 9999.
func appendPattern(dst []byte, pattern string, year int, month time.Month, day int) []byte {
	for i := 0; i < len(pattern); {
		switch pattern[i] {
		case 'y':
			dst = append(dst, hexLower[year/1000], hexLower[year/100%10], hexLower[year/10%10], hexLower[year%10])
			i += 4
		case 'M':
			dst = append(dst, hexLower[month/10], hexLower[month%10])
			i += 2
		case 'd':
			dst = append(dst, hexLower[day/10], hexLower[day%10])
			i += 2
		default:
			dst = append(dst, pattern[i])
			i++
		}
	}
	return dst
}

// parsePattern reads what appendPattern wrote. Marks and days such as
// 2026-02-30 are left to the comparison with the key.
func parsePattern(pattern string, text []byte) (int64, error) {
	if len(text) != len(pattern) {
		return 0, errNotAKey
	}
	var numbers [3]int
	for i, p := range patternParts {
		at := strings.Index(pattern, p)
		n, err := strconv.ParseUint(string(text[at:at+len(p)]), 10, 16)
		if err != nil {
			return 0, errNotAKey
		}
		numbers[i] = int(n)
	}
	return time.Date(numbers[0], time.Month(numbers[1]), numbers[2], 0, 0, 0, 0, time.UTC).Unix() / secondsADay, nil
}
