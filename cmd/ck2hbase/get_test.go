package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// got is a line that get prints.
type got struct {
	Level      string         `json:"level"`
	Period     string         `json:"period"`
	Date       string         `json:"date"`
	Run        string         `json:"run"`
	Dimensions map[string]any `json:"dimensions"`
	Metrics    map[string]any `json:"metrics"`
}

// get reads a row and wants it to succeed.
func (j *testJob) get(args ...string) []got {
	j.t.Helper()
	o := j.command(append([]string{"get", "JOB", "--json"}, args...)...)
	if o.code != 0 {
		j.t.Fatalf("get %q: %v", args, o)
	}
	var all []got
	for line := range strings.Lines(o.stdout) {
		var g got
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&g); err != nil {
			j.t.Fatalf("get %q: %v in %q", args, err, line)
		}
		all = append(all, g)
	}
	return all
}

// notFound wants get to fail with a code and to say something.
func (j *testJob) notFound(code int, args []string, says ...string) {
	j.t.Helper()
	o := j.command(append([]string{"get", "JOB"}, args...)...)
	if o.code != code || o.stdout != "" {
		j.t.Errorf("get %q: want exit code %d: %v", args, code, o)
	}
	for _, text := range says {
		if !strings.Contains(o.stderr, text) {
			j.t.Errorf("get %q: the message has no %q: %v", args, text, o)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	j := newJob(t, modern, "periods: [DAY]", "periods: [DAY, BY_LAST_DAYS_4]\nlevels:\n- {code: sc, dimensions: [shop, channel]}\n- {code: s, dimensions: [shop]}\n- {code: c, dimensions: [channel]}")
	j.notFound(3, []string{"shop=3"}, "nothing is published of job "+j.name, "→ run the job")
	j.run(0)

	for _, channel := range []string{"app", "搜索", "a|b/c%", "", `\N`} {
		condition := "channel = '" + channel + "'"
		if channel == `\N` {
			condition = "channel IS NULL"
		}
		for i, period := range []struct{ name, start string }{{"DAY", date}, {"BY_LAST_DAYS_4", "2026-11-26"}} {
			for _, level := range []struct {
				code, and string
				args      []string
			}{{"c", "", []string{"channel=" + channel}}, {"sc", " AND shop = SHOP", []string{"channel=" + channel, "shop=SHOP"}}} {
				shop := modern.ask(t, "SELECT min(shop) FROM "+database+".events WHERE dt = '"+date+"' AND "+condition)[0]
				and := strings.ReplaceAll(level.and, "SHOP", shop)
				args := strings.Fields(strings.ReplaceAll(strings.Join(level.args, " "), "SHOP", shop))
				want := modern.ask(t, "SELECT sum(pv), count(), max(dt) FROM "+database+".events WHERE dt >= '"+period.start+"' AND "+condition+and)[0]
				lines := j.get(args...)
				if len(lines) != 2 {
					t.Fatalf("%q gives %d lines", args, len(lines))
				}
				// The pointers come in the order of their keys.
				g := lines[1-i]
				var fields []string
				for _, name := range []string{"pv", "rows", "newest"} {
					fields = append(fields, strings.Trim(asJSON(t, g.Metrics[name]), `"`))
				}
				if text := strings.Join(fields, "\t"); text != want || g.Level != level.code || g.Period != period.name || g.Date != date {
					t.Errorf("%q gives %+v, want %q", args, g, want)
				}
				if g.Dimensions["channel"] != channel && !(channel == `\N` && g.Dimensions["channel"] == nil) {
					t.Errorf("%q shows the channel %q", args, g.Dimensions["channel"])
				}
			}
		}
	}

	if lines := j.get("shop=3", "--period", "DAY", "--date", date); len(lines) != 1 || lines[0].Level != "s" || asJSON(t, lines[0].Metrics["rows"]) != "3" {
		t.Errorf("one period gives %+v", lines)
	}
	if lines := j.get("shop=4000000000", "--period", "DAY"); len(lines) != 1 || lines[0].Metrics != nil {
		t.Errorf("a shop that is not there: %+v", lines)
	}
	j.notFound(2, []string{"shop=3", "--period", "WEEK"}, "WEEK", "DAY", "BY_LAST_DAYS_4")
	j.notFound(3, []string{"shop=3", "--date", "2026-11-28"}, "nothing is published", "2026-11-28", "→")
	j.notFound(2, []string{"shop=3", "--date", "2026-13-28"}, "2026-13-28", "→")
	j.notFound(2, []string{"shops=3"}, "no level of the job groups by exactly the given dimensions", "→ give one of: shop=… channel=…; shop=…; channel=…")
	j.notFound(2, []string{"shop"}, `"shop" is not name=value`, "→")
	j.notFound(2, []string{"shop=1", "shop=2"}, "shop is given twice", "→")
	for _, value := range []string{"4294967296", "-1", "three", "", "1.5", `\N`} {
		j.notFound(2, []string{"shop=" + value}, "shop: ", "UInt32")
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The row of the README: the flights of aircraft without a tail number.
func TestGetOfTheFlights(t *testing.T) {
	t.Parallel()
	for _, s := range []*source{modern, old} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, s)
			if err := lab.LoadFlights(t.Context(), s.Cluster, database); err != nil {
				t.Fatal(err)
			}
			j.path = "../../examples/flights.yaml"
			j.env = map[string]string{
				"CK2HBASE_CLICKHOUSE": strings.Join(s.TCPAddrs(), ","), "CK2HBASE_CLUSTER": lab.ClusterName,
				"CK2HBASE_CLICKHOUSE_USER": lab.MoverUser, "CK2HBASE_CLICKHOUSE_PASSWORD": lab.MoverPassword, "CK2HBASE_ZOOKEEPER": quorum(t),
			}
			mine := []string{"--config-override", "name=" + j.name, "--config-override", "sink.hbase.table=" + j.name, "--config-override", "source.table=" + database + ".flights"}
			if o := j.command(append([]string{"run", "JOB", "--date", "2013-12-31"}, mine...)...); o.code != 0 {
				t.Fatalf("%v", o)
			}
			want := s.ask(t, "SELECT count(), sum(distance) FROM "+database+".flights WHERE tailnum IS NULL AND carrier = 'UA'")[0]
			lines := j.get(append(mine, `tailnum=\N`, "carrier=UA")...)
			if len(lines) != 1 || asJSON(t, lines[0].Metrics["flights"])+"\t"+asJSON(t, lines[0].Metrics["distance"]) != want || lines[0].Dimensions["tailnum"] != nil {
				t.Errorf("%+v, want %q", lines, want)
			}
			if lines[0].Metrics["arr_delay_max"] != nil {
				t.Errorf("none of them arrived, and the longest delay is %v", lines[0].Metrics["arr_delay_max"])
			}
		})
	}
}
