package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// scan reads rows as JSON and wants it to succeed.
func (j *testJob) scan(args ...string) []got {
	j.t.Helper()
	o := j.command(append([]string{"scan", "JOB", "--json"}, args...)...)
	if o.code != 0 {
		j.t.Fatalf("scan %q: %v", args, o)
	}
	var all []got
	for line := range strings.Lines(o.stdout) {
		var g got
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&g); err != nil {
			j.t.Fatalf("scan %q: %v in %q", args, err, line)
		}
		all = append(all, g)
	}
	return all
}

// refused wants scan to fail with a code and to say something.
func (j *testJob) refused(code int, args []string, says ...string) {
	j.t.Helper()
	o := j.command(append([]string{"scan", "JOB"}, args...)...)
	if o.code != code || o.stdout != "" {
		j.t.Errorf("scan %q: want exit code %d: %v", args, code, o)
	}
	for _, text := range says {
		if !strings.Contains(o.stderr, text) {
			j.t.Errorf("scan %q: the message has no %q: %v", args, text, o)
		}
	}
}

// lines are rows as ClickHouse's TSV shows them: shop, channel and pv.
func lines(t testing.TB, rows []got) []string {
	t.Helper()
	var out []string
	for _, r := range rows {
		var f []string
		for _, v := range []any{r.Dimensions["shop"], r.Dimensions["channel"], r.Metrics["pv"]} {
			text, isText := v.(string)
			switch {
			case v == nil:
				text = `\N`
			case !isText:
				text = asJSON(t, v)
			}
			f = append(f, text)
		}
		out = append(out, strings.Join(f, "\t"))
	}
	return out
}

// TestScanRanking: the top rows of a ranking are those of ORDER BY … LIMIT.
func TestScanRanking(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, `"{lvl}|{shop}|{channel:esc}|{tp}|{date}"`, `"{lvl}|{tp}|{date}|{pv:desc:be8}{shop:be4}{channel:phoenix_varchar}"`)
	if o := j.command("run", "JOB", "--date", date, "--dry-run"); o.code != 0 {
		t.Errorf("a dry run: %v", o)
	}
	j.refused(3, nil, "nothing is published of job "+j.name, "→ run the job")
	j.run(0)
	ranking := "SELECT shop, channel, sum(pv) AS s FROM " + database + ".events WHERE dt = '" + date + "' GROUP BY shop, channel ORDER BY s DESC, shop, ifNull(channel, '-none-')"
	all := modern.ask(t, ranking)
	if d := cmp.Diff(all, lines(t, j.scan())); d != "" {
		t.Errorf("all rows (-ClickHouse +scan):\n%s", d)
	}
	if d := cmp.Diff(all[:7], lines(t, j.scan("--limit", "7", "--period", "DAY", "--date", date, "--level", "11"))); d != "" {
		t.Errorf("the top 7 (-ClickHouse +scan):\n%s", d)
	}
	o := j.command("scan", "JOB", "--limit", "2")
	table := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	if o.code != 0 || len(table) != 4 || !strings.HasPrefix(table[0], "level 11, DAY to "+date+", run ") || strings.Join(strings.Fields(table[1]), " ") != "shop channel pv rows newest" {
		t.Errorf("the table: %v", o)
	}
	top := strings.Split(all[0], "\t")
	if got := strings.Fields(table[2]); got[0] != top[0] || got[len(got)-3] != top[2] {
		t.Errorf("the first row is %q, want %q", table[2], top)
	}
	j.refused(2, []string{"--prefix", "shop=3"}, "shop stands behind the metric pv in the row key", "→ leave shop out")
	j.refused(2, []string{"--limit", "0"}, "--limit must be 1 or more")
	j.notFound(2, []string{"shop=3", "channel=app"}, "the row key holds the metric pv", "→ read it with scan: ck2hbase scan ")
}

// TestScanSalted: rows come sorted as if there were no salt, or from one range
// where the salt can be computed.
func TestScanSalted(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, `"{lvl}|{shop}|{channel:esc}|{tp}|{date}"`, `"{salt}|{lvl}{tp}|{shop:010}|{channel:esc}|{date}"`+"\n    salt: {over: [shop], hash: md5, prefix: 1}",
		"periods: [DAY]", "periods: [DAY, BY_LAST_DAYS_4]\nlevels:\n- {code: sc, dimensions: [shop, channel]}\n- {code: c, dimensions: [channel]}")
	j.run(0)
	ask := func(start, more string) []string {
		return modern.ask(t, "SELECT shop, channel, sum(pv) FROM "+database+".events WHERE dt >= '"+start+"' AND dt <= '"+date+"'"+more+
			" GROUP BY shop, channel ORDER BY shop, ifNull(replaceAll(replaceAll(replaceAll(channel, '|', '%7C'), '搜', '%E6'), '/', '%2F'), '%2Dnone%2D')")
	}
	for period, start := range map[string]string{"DAY": date, "BY_LAST_DAYS_4": "2026-11-26"} {
		byShop := func(rows []string) map[string]int {
			n := map[string]int{}
			for _, r := range rows {
				n[r]++
			}
			return n
		}
		got := lines(t, j.scan("--level", "sc", "--period", period))
		want := ask(start, "")
		if d := cmp.Diff(byShop(want), byShop(got)); d != "" {
			t.Errorf("%s (-ClickHouse +scan):\n%s", period, d)
		}
		var shops, sorted []string
		for i := range got {
			shops = append(shops, strings.Split(got[i], "\t")[0])
			sorted = append(sorted, strings.Split(want[i], "\t")[0])
		}
		if d := cmp.Diff(sorted, shops); d != "" {
			t.Errorf("%s: the order of the shops:\n%s", period, d)
		}
		if d := cmp.Diff(byShop(ask(start, " AND shop = 7")), byShop(lines(t, j.scan("--period", period, "--prefix", "shop=7")))); d != "" {
			t.Errorf("%s, shop 7 (-ClickHouse +scan):\n%s", period, d)
		}
		first := ask(start, " AND channel = 'app'")[:1]
		shop, _, _ := strings.Cut(first[0], "\t")
		if d := cmp.Diff(first, lines(t, j.scan("--period", period, "--prefix", "shop="+shop, "--prefix", "channel=app"))); d != "" {
			t.Errorf("%s, one row (-ClickHouse +scan):\n%s", period, d)
		}
	}
	if rows := j.scan("--limit", "3"); len(rows) != 4*3 {
		t.Errorf("3 rows of each level and period: %d", len(rows))
	}
	if rows := j.scan("--prefix", "shop=4000000000"); len(rows) != 0 {
		t.Errorf("a shop that is not there: %+v", rows)
	}
	if o := j.command("scan", "JOB", "--prefix", "shop=4000000000", "--period", "DAY"); o.code != 0 || !strings.HasSuffix(o.stdout, "\nno rows\n") {
		t.Errorf("a shop that is not there: %v", o)
	}
	if rows := j.scan("--prefix", "channel=app"); len(rows) != 2 || rows[0].Level != "c" || rows[1].Level != "c" {
		t.Errorf("the level of channels alone: %+v", rows)
	}
	j.refused(2, []string{"--prefix", "channel=app", "--level", "sc"}, "channel stands behind", "→ give shop, too")
	j.refused(2, []string{"--prefix", "shops=3"}, "the job has no dimension shops", "→ the dimensions are shop, channel")
	j.refused(2, []string{"--level", "x"}, "the job has no level x", "→ the levels are sc, c")
	j.refused(2, []string{"--prefix", "shop=3", "--level", "c"}, "no level of the job has all of the given dimensions")
	j.refused(2, []string{"--period", "WEEK"}, "WEEK", "DAY", "BY_LAST_DAYS_4")
	j.refused(2, []string{"--prefix", "shop=x"}, "shop: ", "UInt32")
	j.refused(2, []string{"--prefix", "shop"}, `"shop" is not name=value`)
	j.refused(3, []string{"--date", "2026-11-28"}, "nothing is published", "2026-11-28")
}

// TestGetTable: a row for a person.
func TestGetTable(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	j.run(0)
	shop := modern.ask(t, "SELECT min(shop) FROM "+database+".events WHERE dt = '"+date+"' AND channel IS NULL")[0]
	o := j.command("get", "JOB", "shop="+shop, `channel=\N`)
	table := strings.Split(o.stdout, "\n")
	if o.code != 0 || len(table) != 4 || !strings.HasPrefix(table[0], "level 11, DAY to "+date) || !strings.HasPrefix(table[2], shop+" ") || !strings.Contains(table[2], `\N`) {
		t.Errorf("%v", o)
	}
	if o := j.command("get", "JOB", "shop=4000000000", "channel="); o.code != 0 || !strings.Contains(o.stdout, `""`) || !strings.Contains(o.stdout, "no such row\n") {
		t.Errorf("%v", o)
	}
}

// TestExampleRanking: the top shops of the example are those of ClickHouse.
func TestExampleRanking(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern)
	if err := lab.LoadTraffic(t.Context(), modern.Cluster, database, lab.TrafficOptions{Rows: 20_000}); err != nil {
		t.Fatal(err)
	}
	j.path = "../../examples/ranking.yaml"
	j.env = map[string]string{
		"CK2HBASE_CLICKHOUSE": strings.Join(modern.TCPAddrs(), ","), "CK2HBASE_CLUSTER": lab.ClusterName,
		"CK2HBASE_CLICKHOUSE_USER": lab.MoverUser, "CK2HBASE_CLICKHOUSE_PASSWORD": lab.MoverPassword, "CK2HBASE_ZOOKEEPER": quorum(t),
	}
	mine := []string{"--config-override", "name=" + j.name, "--config-override", "sink.hbase.table=" + j.name, "--config-override", "source.table=" + database + ".traffic"}
	if o := j.command(append([]string{"run", "JOB", "--date", date}, mine...)...); o.code != 0 {
		t.Fatalf("%v", o)
	}
	top := func(condition string) []string {
		return modern.ask(t, "SELECT shop_id, sum(pv) AS s, uniqExact(user_id) FROM "+database+".traffic WHERE dt BETWEEN toDate('"+date+"') - 29 AND '"+date+"'"+condition+
			" GROUP BY shop_id ORDER BY s DESC, shop_id LIMIT 10")
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{{[]string{"--level", "shop"}, top("")}, {[]string{"--prefix", "first_source=app"}, top(" AND first_source = 'app'")}} {
		var got []string
		for _, r := range j.scan(append(append(tt.args, "--limit", "10"), mine...)...) {
			got = append(got, asJSON(t, r.Dimensions["shop_id"])+"\t"+asJSON(t, r.Metrics["pv"])+"\t"+asJSON(t, r.Metrics["uv"]))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-ClickHouse +scan):\n%s", tt.args, d)
		}
	}
}
