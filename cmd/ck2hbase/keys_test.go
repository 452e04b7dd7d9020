package main

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBinaryKeys: keys of bytes, which ClickHouse computes too, with a salt in
// one byte and the regions that follow it.
func TestBinaryKeys(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, s, `"{lvl}|{shop}|{channel:esc}|{tp}|{date}"`,
				`"{salt}{shop:desc:be4}{channel:phoenix_varchar}\\x00{date:desc:be4}{lvl}{tp}"`+"\n    salt: {over: [shop], hash: murmur3, buckets: 16, form: binary}")
			j.run(0)
			want := s.ask(t, `SELECT hex(toUInt8(murmurHash3_32(unhex(hex(bitNot(shop)))) % 16)), hex(bitNot(shop)), hex(ifNull(channel, '-none-')),
				hex(bitNot(toUInt32(toUInt16(toDate('`+date+`'))))), sum(pv) FROM `+database+`.events WHERE dt = '`+date+`' GROUP BY shop, channel`)
			rows := map[string]string{}
			for _, line := range want {
				f := strings.Split(line, "\t")
				rows[f[0]+f[1]+f[2]+"00"+f[3]+strings.ToUpper(hex.EncodeToString([]byte("11DAY")))] = f[4]
			}
			got := map[string]string{}
			for key, cells := range j.cells() {
				got[strings.ToUpper(hex.EncodeToString([]byte(key)))] = long(cells["pv"])
			}
			if d := cmp.Diff(rows, got); d != "" {
				t.Errorf("rows by key (-ClickHouse +HBase):\n%s", d)
			}
			regions, err := hbaseClient(t).Regions(t.Context(), j.name)
			if err != nil || len(regions) != 16 {
				t.Errorf("%d regions, %v", len(regions), err)
			}
			j.checkGet(s)
		})
	}
}

// TestPhoenixTable: the keys and cells of a salted table of Phoenix.
func TestPhoenixTable(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, `"{lvl}|{shop}|{channel:esc}|{tp}|{date}"`,
		`"{salt}{shop:phoenix_bigint}{channel:phoenix_varchar}\\x00{tp}\\x00{date:phoenix_date}"`+"\n    salt: {hash: phoenix, buckets: 4}",
		"pv: sum(pv)", "pv: {expr: sum(pv), encode: phoenix_bigint}", "encode: text", "encode: phoenix_unsigned_long",
		"newest: max(dt)", "newest: {expr: max(dt), encode: phoenix_date}")
	j.run(0)
	const milliseconds = 24 * 60 * 60 * 1000
	flipped := func(text string) string {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return string(binary.BigEndian.AppendUint64(nil, n|1<<63))
	}
	day := modern.ask(t, "SELECT toUInt64(toUInt16(toDate('"+date+"'))) * "+strconv.Itoa(milliseconds))[0]
	want := map[string]map[string]string{}
	for _, line := range modern.ask(t, "SELECT shop, hex(ifNull(channel, '-none-')), sum(pv), count() FROM "+database+".events WHERE dt = '"+date+"' GROUP BY shop, channel") {
		f := strings.Split(line, "\t")
		channel, err := hex.DecodeString(f[1])
		if err != nil {
			t.Fatal(err)
		}
		count := []byte(flipped(f[3]))
		count[0] &^= 0x80
		want[flipped(f[0])+string(channel)+"\x00DAY\x00"+flipped(day)] = map[string]string{"pv": flipped(f[2]), "rows": string(count), "newest": flipped(day)}
	}
	got := map[string]map[string]string{}
	for key, cells := range j.cells() {
		if key[0] >= 4 {
			t.Errorf("the salt of %q", key)
		}
		got[key[1:]] = cells
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows by key (-ClickHouse +HBase):\n%s", d)
	}
	j.checkGet(modern)
}

// TestPackedCell: all metrics in one cell, which ClickHouse writes as JSON, too.
func TestPackedCell(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "    table: NAME\n", "    table: NAME\n    pack: m\n")
	j.run(0)
	want := map[string]int{}
	for _, line := range modern.ask(t, `SELECT concat('{"pv":', toString(sum(pv)), ',"rows":"', toString(count()), '","newest":"', toString(max(dt)), '"}') FROM `+database+".events WHERE dt = '"+date+"' GROUP BY shop, channel") {
		want[line]++
	}
	got := map[string]int{}
	for key, cells := range j.cells() {
		if len(cells) != 1 {
			t.Errorf("%q has %d cells", key, len(cells))
		}
		got[cells["m"]]++
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("cells (-ClickHouse +HBase):\n%s", d)
	}
	j.checkGet(modern)
}

// checkGet reads one row with get and compares it with ClickHouse.
func (j *testJob) checkGet(s *source) {
	j.t.Helper()
	line := s.ask(j.t, "SELECT shop, sum(pv), count(), max(dt) FROM "+database+".events WHERE dt = '"+date+"' AND channel = 'app' GROUP BY shop ORDER BY shop DESC LIMIT 1")[0]
	shop, want, _ := strings.Cut(line, "\t")
	lines := j.get("shop="+shop, "channel=app")
	if len(lines) != 1 {
		j.t.Fatalf("get gives %d lines", len(lines))
	}
	var got []string
	for _, name := range []string{"pv", "rows", "newest"} {
		got = append(got, strings.Trim(asJSON(j.t, lines[0].Metrics[name]), `"`))
	}
	if strings.Join(got, "\t") != want {
		j.t.Errorf("get gives %q, ClickHouse %q", got, want)
	}
}
