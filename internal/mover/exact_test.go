package mover_test

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/report"
)

// long and double are HBase's Bytes.toBytes(long) and Bytes.toBytes(double), by hand.
func long(t *testing.T, s string) string {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

func double(t *testing.T, s string) string {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(x)))
}

// salted puts the documented salt over one text in front of a key.
func salted(over string, buckets uint64, key string) string {
	sum := md5.Sum([]byte(over))
	return fmt.Sprintf("%02x|%s", binary.BigEndian.Uint64(sum[:8])%buckets, key)
}

// saltOf16 is the same for 16 buckets, whose salt has one digit.
func saltOf16(over, key string) string {
	sum := md5.Sum([]byte(over))
	return fmt.Sprintf("%x|%s", binary.BigEndian.Uint64(sum[:8])%16, key)
}

// flightsTruth is the whole flights job by one unsliced query.
func flightsTruth(t *testing.T, c *lab.Cluster) map[string]map[string]string {
	t.Helper()
	truth := map[string]map[string]string{}
	for _, r := range ask(t, c, `SELECT tailnum, carrier, count(), countIf(isNull(dep_time)), avg(arr_delay), max(arr_delay),
		uniqExact(dest), sum(distance) FROM `+database+`.flights WHERE dt >= '2013-01-01' AND dt <= '2013-12-31' GROUP BY tailnum, carrier`) {
		tail := r[0]
		if tail == `\N` {
			tail = "unknown"
		}
		cells := map[string]string{
			"flights": long(t, r[2]), "cancelled": long(t, r[3]), "destinations": long(t, r[6]), "distance": long(t, r[7]),
		}
		if r[4] != `\N` && r[4] != "nan" { // 18.16 has no average of nothing either
			cells["arr_delay_avg"] = double(t, r[4])
		}
		if r[5] != `\N` {
			cells["arr_delay_max"] = long(t, r[5])
		}
		truth[saltOf16(tail, tail+"|"+r[1]+"|YEAR|2013-12-31")] = cells
	}
	return truth
}

// trafficTruth is the whole traffic job by one unsliced query.
func trafficTruth(t *testing.T, c *lab.Cluster) map[string]map[string]string {
	t.Helper()
	truth := map[string]map[string]string{}
	for _, r := range ask(t, c, `SELECT shop_id, first_source, sum(pv), uniqExact(user_id), toInt64(sum(amount) * 100) FROM `+database+`.traffic
		WHERE dt >= '2026-10-31' AND dt <= '2026-11-29' GROUP BY shop_id, first_source`) {
		truth[salted(r[0], 64, "11|"+r[0]+"|"+r[1]+"|BY_LAST_DAYS_30|2026-11-29")] = map[string]string{
			"p": long(t, r[2]), "u": long(t, r[3]), "a": hundredths(t, r[4]),
		}
	}
	return truth
}

// hundredths writes a number of hundredths as a decimal with two digits.
func hundredths(t *testing.T, s string) string {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// equal compares every cell of two tables and shows the first differences.
func equal(t *testing.T, want, got map[string]map[string]string) {
	t.Helper()
	shown := 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !maps.Equal(want[key], got[key]) && shown < 5 {
			shown++
			t.Errorf("row %q: in HBase %q, in ClickHouse %q", key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok && shown < 10 {
			shown++
			t.Errorf("row %q is in HBase and not in ClickHouse: %q", key, got[key])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d rows in HBase, %d in ClickHouse", len(got), len(want))
	}
}

// TestP1Exact: a published run has left in HBase exactly the rows of one
// unsliced query, cell by cell, whatever the number of slices.
func TestP1Exact(t *testing.T) {
	jobs := map[string]struct {
		date, table string
		truth       func(*testing.T, *lab.Cluster) map[string]map[string]string
		rows        uint64
	}{
		"flights": {"2013-12-31", "flights", flightsTruth, lab.FlightsRows},
		"traffic": {"2026-11-29", "traffic", trafficTruth, 0},
	}
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		for name, tc := range jobs {
			truth := tc.truth(t, c)
			if len(truth) < 1000 {
				t.Fatalf("the truth of %s has %d rows", name, len(truth))
			}
			for _, n := range []int{1, 3, 7} {
				t.Run(fmt.Sprintf("%s in %d", name, n), func(t *testing.T) {
					j := load(t, c, "../../examples/"+name+".yaml", "source.table="+database+"."+tc.table, fmt.Sprintf("scatter.slices=%d", n))
					result, err := run(t, j, tc.date)
					if err != nil {
						t.Fatal(err)
					}
					equal(t, truth, tableOf(t, j))
					u := result.Units[0]
					if result.State != report.Published || !u.Verified || *u.ClickHouse != uint64(len(truth)) || *u.HBase != uint64(len(truth)) || u.Slices != n {
						t.Errorf("the report says %s, verified %v, %d and %d rows, %d slices; there are %d rows", result.State, u.Verified, *u.ClickHouse, *u.HBase, u.Slices, len(truth))
					}
					if tc.rows != 0 && *u.SourceRows != tc.rows {
						t.Errorf("the report counts %d source rows, want %d", *u.SourceRows, tc.rows)
					}
				})
			}
		}
	})
}

// Several levels and periods, NULL dimensions under each policy, NULL metrics,
// other encodings, and a small batch: still every cell.
func TestP1ExactForLevelsPeriodsAndNulls(t *testing.T) {
	onEach(t, func(t *testing.T, c *lab.Cluster) {
		j := load(t, c, "testdata/levels.yaml", "source.table="+database+".traffic")
		if _, err := run(t, j, "2026-11-29"); err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]string{}
		for _, period := range []struct{ tp, start string }{{"DAY", "2026-11-29"}, {"WEEK", "2026-11-23"}, {"BY_LAST_DAYS_3", "2026-11-27"}} {
			for _, level := range []struct{ code, group string }{
				{"sc", "channel, first_source"}, {"c", "channel, ''"}, // the order within a level does not matter
			} {
				sql := `SELECT ` + level.group + `, sum(pv), sum(discount), min(discount), max(dt) FROM ` + database + `.traffic
					WHERE dt >= '` + period.start + `' AND dt <= '2026-11-29' GROUP BY ` + level.group
				for _, r := range ask(t, c, sql) {
					channel, cells := r[0], map[string]string{"pv": r[2], "last": r[5]}
					if channel == `\N` {
						channel = "-none-"
					}
					if r[3] != `\N` {
						cells["discount"] = scaled(t, r[3])
					}
					cells["least"] = strings.ReplaceAll(r[4], `\N`, "nil")
					if r[4] != `\N` {
						cells["least"] = twoDigits(t, r[4])
					}
					key := level.code + "/" + channel + "/" + r[1] + "/" + period.tp + "/20261129"
					want[key] = cells
				}
			}
		}
		equal(t, want, tableOf(t, j))
	})
}

// scaled is Bytes.toBytes(BigDecimal) of a decimal with two digits, for values
// whose hundredths fit three bytes.
func scaled(t *testing.T, s string) string {
	t.Helper()
	n, err := strconv.ParseInt(strings.ReplaceAll(twoDigits(t, s), ".", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	unscaled := binary.BigEndian.AppendUint64(nil, uint64(n))
	for len(unscaled) > 1 && (unscaled[0] == 0 && unscaled[1] < 0x80 || unscaled[0] == 0xff && unscaled[1] >= 0x80) {
		unscaled = unscaled[1:]
	}
	return string(append([]byte{0, 0, 0, 2}, unscaled...))
}

// twoDigits pads a decimal to two digits: modern servers drop trailing zeros in text.
func twoDigits(t *testing.T, s string) string {
	t.Helper()
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > 2 {
		t.Fatalf("%s has more than two digits", s)
	}
	return whole + "." + (fraction + "00")[:2]
}

// A part of a node's answer that is missing leaves every group there, with sums
// that are too small: no count of groups can tell, the count of source rows does.
func TestP3MissingRowsInEveryGroup(t *testing.T) {
	c := servers[0].loaded(t)
	j := load(t, c, "testdata/levels.yaml", "source.table="+database+".traffic",
		"source.where=dt BETWEEN {start} AND {end} AND (user_id % 3 != 0 OR initialQueryID() LIKE '%-plan-%' OR initialQueryID() LIKE '%-verify-%')")
	result, err := run(t, j, "2026-11-29")
	if failure.ClassOf(err) == 0 || result.State == report.Published {
		t.Errorf("published with a third of the rows missing: %+v", result.Units)
	}
}

// Plan and slices may have asked a replica that lacks rows, and the count another:
// where no part of the source has changed, different numbers of rows are no drift.
func TestP3NumbersThatDifferThoughNothingChanged(t *testing.T) {
	c := servers[0].loaded(t)
	j := load(t, c, "testdata/levels.yaml", "source.table="+database+".traffic",
		"source.where=dt BETWEEN {start} AND {end} AND (user_id % 3 != 0 OR initialQueryID() LIKE '%-verify-%')")
	result, err := run(t, j, "2026-11-29")
	if failure.ClassOf(err) != failure.Mismatch || result.State == report.Published {
		t.Errorf("class %d, %v: %+v", failure.ClassOf(err), err, result.Units)
	}
}
