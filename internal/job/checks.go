package job

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// addresses reads a list of host:port; an item may hold several.
func (d *decoder) addresses(dst *[]string, defaultPort string) func(*node) {
	return func(n *node) {
		var all []string
		d.list(n, "host:port", func(_ int, item *node) {
			s, ok := d.nonEmpty(item)
			if !ok {
				return
			}
			for one := range strings.SplitSeq(s, ",") {
				address, err := parseAddress(strings.TrimSpace(one), defaultPort)
				if err != nil {
					d.report(item.at, "write host:port, as ck1:"+defaultPort, "%s: %v", name(item), err)
					return
				}
				if slices.Contains(all, address) {
					d.report(item.at, "remove one", "%s: an address is given twice", name(n))
					return
				}
				all = append(all, address)
			}
		})
		*dst = all
	}
}

// parseAddress splits and joins host:port, to one form. Its errors do not
// quote what they are about: an address may hold a password by mistake.
func parseAddress(s, defaultPort string) (string, error) {
	if s == "" {
		return "", errors.New("an address is empty")
	}
	if strings.Contains(s, "://") {
		return "", errors.New("an address is host:port, not a URL")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Contains(s, ":") && net.ParseIP(s) == nil {
			return "", errors.New("not host:port; an IPv6 address with a port stands in brackets, as [::1]:9000")
		}
		host, port = strings.Trim(s, "[]"), defaultPort
	}
	if !isHost(host) {
		return "", errors.New("not a host's name or address")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", errors.New("the port is a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

func isHost(s string) bool {
	return net.ParseIP(s) != nil || (s != "" && checkChars(s, "_-.", "", true) == nil)
}

// nodeMap reads a mapping of hosts, each host or host:port.
func (d *decoder) nodeMap(dst *map[string]string) func(*node) {
	return func(n *node) {
		if n.kind != kindMap {
			d.wants(n, "a mapping of hosts to hosts", "write {ck-1.internal: 10.0.0.1}")
			return
		}
		hosts := make(map[string]string, len(n.keys))
		for _, e := range n.keys {
			to, ok := d.nonEmpty(e.value)
			if !ok {
				continue
			}
			if _, dup := hosts[e.key]; dup {
				d.report(e.at, "keep one of the two", "the host %q is given twice", shownKey(e.key))
			}
			for _, side := range []struct {
				text string
				at   place
			}{{e.key, e.at}, {to, e.value.at}} {
				if _, err := parseAddress(side.text, "1"); err != nil {
					d.report(side.at, "write a host, or host:port", "%s: %v", name(n), err)
				}
			}
			hosts[e.key] = to
		}
		*dst = hosts
	}
}

// checkNames refuses one name for two things.
func (d *decoder) checkNames() {
	seen := map[string]bool{}
	for i, dim := range d.job.Dimensions {
		if seen[dim.Name] {
			d.atPath(d.dimensionPaths[i], "give it another name: {name: …, expr: …}", "the dimension %q is given twice", dim.Name)
		}
		seen[dim.Name] = true
	}
	for _, m := range d.job.Metrics {
		if seen[m.Name] {
			d.atPath("metrics."+m.Name, "give one of them another name", "%q is a dimension and a metric", m.Name)
		}
	}
}

// atPath reports at a key of the file.
func (d *decoder) atPath(path, remedy, format string, args ...any) {
	places := map[string]place{}
	d.root.places(places)
	d.report(places[path], remedy, format, args...)
}

// checkName is for dimensions and metrics.
func checkName(s string) error {
	if slices.Contains([]string{"salt", "lvl", "tp", "date", "md5"}, strings.ToLower(s)) {
		return errors.New("the name is taken by a field of row keys; choose another (a column of this name goes into expr)")
	}
	if !isName(s) || len(s) > 100 {
		return errors.New("a name is a letter or _, then letters, digits, _; at most 100")
	}
	return nil
}

func checkCode(s string) error {
	if len(s) > 32 {
		return errors.New("longer than 32 characters")
	}
	return checkChars(s, "_-", "letters, digits, _ -", false)
}

func checkSourceTable(s string) error {
	database, table, dotted := strings.Cut(s, ".")
	if !isName(database) || (dotted && !isName(table)) {
		return errors.New("write table or database.table; names that need quoting are not supported yet")
	}
	return nil
}

// checkPlain refuses characters that do not show.
func checkPlain(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("it holds a character that does not show")
	}
	return nil
}

// checkChars allows ASCII letters, digits and the extra characters; firstAlnum
// wants a letter, digit or _ at the beginning.
func checkChars(s, extra, allowed string, firstAlnum bool) error {
	for i := range len(s) {
		c := s[i]
		alnum := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !alnum && (strings.IndexByte(extra, c) < 0 || (i == 0 && firstAlnum && c != '_')) {
			if firstAlnum {
				allowed += ", and a letter, digit or _ at the beginning"
			}
			return fmt.Errorf("allowed are %s", allowed)
		}
	}
	return nil
}
