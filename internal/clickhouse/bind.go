package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A knownSetting is a setting as system.settings shows it to the user.
type knownSetting struct {
	value string
	// min and max are constraints; empty where there are none.
	min, max string
	// fixed says that the user cannot change it.
	fixed bool
}

// bind learns which settings the server has and what this user may set, and
// proves that the job's limits hold.
func (n *Node) bind(ctx context.Context) error {
	ctx, stop := untimed(ctx, metaTimeout)
	defer stop()
	var err error
	if n.known, err = n.readSettings(ctx, n.settings); err != nil {
		return err
	}
	n.threads = threadsOf(n.known["max_threads"].value)
	comment, ok := n.known["log_comment"]
	n.commented = ok && !comment.fixed
	wanted, sent := n.fitting(bounds(n.limits, n.http))
	n.settings = sent
	return n.proveBounds(ctx, wanted)
}

// fitting gives the settings that the server has, and those of them that the
// user may send; a value above what the user may set is lowered where lower is
// as good. An unknown setting would be an error, and what it would forbid does
// not exist.
func (n *Node) fitting(all []setting) (wanted, sent []setting) {
	for _, s := range all {
		k, ok := n.known[s.name]
		if !ok {
			continue
		}
		s, ok = s.fit(k)
		wanted = append(wanted, s)
		if ok {
			sent = append(sent, s)
		}
	}
	return wanted, sent
}

// fit brings a setting within the user's constraints; false where it cannot be
// sent, so that the server's own value stays in force.
func (s setting) fit(k knownSetting) (setting, bool) {
	if k.fixed {
		return s, false
	}
	if s.word != "" {
		return s, true
	}
	if most, err := strconv.ParseFloat(k.max, 64); err == nil && float64(s.num) > most {
		if !s.atMost || most < 1 {
			return s, false
		}
		s.num = int64(most)
	}
	if least, err := strconv.ParseFloat(k.min, 64); err == nil && float64(s.num) < least {
		return s, false
	}
	return s, true
}

// settingsOf are the settings of a query; a gentle one must do with less, and
// one that samples may stop early.
func (n *Node) settingsOf(q Query) []setting {
	if !q.Gentle && q.ReadAtMost == 0 {
		return n.settings
	}
	all := slices.Clone(n.settings)
	var more []setting
	if q.Gentle {
		more = append(more, setting{name: "max_threads", num: int64(max(1, n.threads/2))})
	}
	if q.ReadAtMost > 0 {
		// The other one counts the rows of all servers at the initiator, where it
		// would drop what some of them have read.
		name := "max_rows_to_read_leaf"
		if _, ok := n.known[name]; !ok {
			name = "max_rows_to_read"
		}
		more = append(more, setting{name: name, num: int64(q.ReadAtMost)})
	}
	for i, s := range all {
		switch {
		case q.Gentle && s.name == spillSetting:
			s.num /= 4
		case q.ReadAtMost > 0 && strings.HasPrefix(s.name, "read_overflow_mode"):
			s.word = "break"
		default:
			continue
		}
		if s, ok := s.fit(n.known[s.name]); ok {
			all[i] = s
		}
	}
	_, sent := n.fitting(more)
	return append(all, sent...)
}

// threadsOf reads max_threads, which is a number or 'auto(8)'.
func threadsOf(value string) int {
	digits := strings.Trim(value, "auto()'")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// readSettings gives the server's settings by name, as they are for a query
// with the given settings in force. They come in one row, of which no profile
// can cut a part off.
func (n *Node) readSettings(ctx context.Context, in []setting) (map[string]knownSetting, error) {
	columns := "groupArray(name), groupArray(value)"
	var names, values, least, most []string
	var fixed []uint8
	dest := []any{&names, &values}
	if n.modern {
		columns += ", groupArray(ifNull(min, '')), groupArray(ifNull(max, '')), groupArray(readonly)"
		dest = append(dest, &least, &most, &fixed)
	}
	if err := n.one(ctx, in, "SELECT "+columns+" FROM system.settings", dest...); err != nil {
		return nil, n.classify(ctx, timerCause(ctx, err))
	}
	all := make(map[string]knownSetting, len(names))
	for i, name := range names {
		k := knownSetting{value: values[i]}
		if n.modern {
			k.min, k.max, k.fixed = least[i], most[i], fixed[i] != 0
		}
		all[name] = k
	}
	if !n.modern && all["readonly"].value == "1" {
		for name, k := range all {
			k.fixed = true
			all[name] = k
		}
	}
	return all, nil
}

// proveBounds reads the settings back as a query of the mover sees them, and
// fails if one that must hold does not: some servers ignore the settings of
// readonly users without a word.
func (n *Node) proveBounds(ctx context.Context, wanted []setting) error {
	got, err := n.readSettings(ctx, n.settings)
	if err != nil {
		return err
	}
	var off []string
	for _, s := range wanted {
		if s.mustHold && !s.holds(got[s.name].value) {
			off = append(off, s.off(got[s.name].value, n.known[s.name]))
		}
	}
	if len(off) == 0 {
		return nil
	}
	remedy := "let the user set these settings (no constraints on them, and readonly=0 or readonly=2), or set them to the wanted values in its profile"
	if got["readonly"].value == "1" {
		remedy = "give the user readonly=2 instead of readonly=1, or set these settings to the wanted values in its profile"
	}
	return failure.New(failure.Preflight, fmt.Errorf("ClickHouse %s %w: %s", n.Addr, errUnbounded, strings.Join(off, "; ")), remedy)
}

// off says what is in force instead of what is wanted, and why.
func (s setting) off(value string, k knownSetting) string {
	text := fmt.Sprintf("%s is %s, wanted %s", s.name, value, s.value())
	if s.atMost {
		text += " or less"
	}
	switch {
	case k.fixed:
		return text + " (the user cannot change it)"
	case k.min != "" || k.max != "":
		return text + fmt.Sprintf(" (the user's constraints: min %s, max %s)", orNone(k.min), orNone(k.max))
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
