package job

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseSize reads a number of bytes: 4096, 60GB, 2MiB.
func parseSize(s string) (int64, error) {
	digits, unit := splitNumber(s)
	if digits == "" {
		return 0, errors.New("not a size")
	}
	factor, ok := sizeUnits(unit)
	if !ok {
		return 0, errors.New("not a size")
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, errors.New("too large")
	}
	return n * factor, nil
}

func sizeUnits(unit string) (int64, bool) {
	switch unit {
	case "", "B":
		return 1, true
	case "kB", "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	case "KiB":
		return 1 << 10, true
	case "MiB":
		return 1 << 20, true
	case "GiB":
		return 1 << 30, true
	case "TiB":
		return 1 << 40, true
	}
	return 0, false
}

// parseDuration reads 600s, 10m, 24h, 90d or a sum of such: 1h30m.
func parseDuration(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("not a duration")
	}
	var total time.Duration
	for s != "" {
		digits, rest := splitNumber(s)
		if digits == "" || rest == "" {
			return 0, errors.New("not a duration")
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' })
		if end < 0 {
			end = len(rest)
		}
		factor, ok := durationUnits(rest[:end])
		if !ok {
			return 0, errors.New("not a duration")
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > int64(math.MaxInt64/factor) {
			return 0, errors.New("too long")
		}
		part := time.Duration(n) * factor
		if total > math.MaxInt64-part {
			return 0, errors.New("too long")
		}
		total += part
		s = rest[end:]
	}
	return total, nil
}

func durationUnits(unit string) (time.Duration, bool) {
	switch unit {
	case "ms":
		return time.Millisecond, true
	case "s":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	case "d":
		return 24 * time.Hour, true
	}
	return 0, false
}

// splitNumber cuts the leading digits off.
func splitNumber(s string) (digits, rest string) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	return s[:end], strings.TrimPrefix(s[end:], " ")
}
