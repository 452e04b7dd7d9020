package file_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
	"github.com/ck2hbase/ck2hbase/internal/sink/file"
	"github.com/ck2hbase/ck2hbase/internal/sink/sinktest"
)

var formats = []job.FileFormat{job.NDJSON, job.CSV, job.Parquet}

// typed makes columns of types, called a, b, c, …
func typed(t *testing.T, names ...string) []row.Column {
	t.Helper()
	columns := make([]row.Column, len(names))
	for i, name := range names {
		typ, err := row.ParseType(name)
		if err != nil {
			t.Fatal(err)
		}
		columns[i] = row.Column{Name: string(rune('a' + i)), Type: typ}
	}
	return columns
}

func TestSuite(t *testing.T) {
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T, f sinktest.Fixture) sinktest.Target {
				columns := typed(t, "UInt64", "Nullable(Float64)", "UInt64", "Nullable(String)")
				columns[2].Name, columns[3].Name = "n", "s"
				c := file.Config{
					Dir: t.TempDir(), Format: format, Dimensions: columns[2:], Metrics: columns[:2],
					Levels: []job.Level{{Code: "11", Dimensions: []int{0, 1}}},
				}
				s, err := file.New(c)
				if err != nil {
					t.Fatal(err)
				}
				merged := 0
				return sinktest.Target{Sink: s, Form: true, Read: func(t *testing.T) map[string]map[string][]byte {
					merged++
					path := filepath.Join(t.TempDir(), strconv.Itoa(merged))
					n, err := file.Merge(t.Context(), c, path, s.Parts(f.Unit))
					if err != nil {
						t.Fatal(err)
					}
					rows := read(t, format, path)
					if int(n) != len(rows) {
						t.Errorf("Merge counted %d rows, there are %d", n, len(rows))
					}
					return asCells(t, f, rows)
				}}
			})
		})
	}
}

// read gives the rows of a file as texts by column; NULL is absent.
func read(t *testing.T, format job.FileFormat, path string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch format {
	case job.NDJSON:
		return readNDJSON(t, text)
	case job.CSV:
		return readCSV(t, text)
	default:
		return readParquet(t, text)
	}
}

func readNDJSON(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	var rows []map[string]string
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var object map[string]json.RawMessage
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		r := map[string]string{}
		for name, raw := range object {
			var s string
			switch {
			case string(raw) == "null":
			case json.Unmarshal(raw, &s) == nil:
				r[name] = s
			default:
				r[name] = string(raw)
			}
		}
		rows = append(rows, r)
	}
}

func readCSV(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		r := map[string]string{}
		for i, s := range record {
			if s != `\N` {
				r[records[0][i]] = s
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func readParquet(t *testing.T, text []byte) []map[string]string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	names := f.Schema().Columns()
	var rows []map[string]string
	for _, group := range f.RowGroups() {
		reader := group.Rows()
		buffer := make([]parquet.Row, 100)
		for {
			n, err := reader.ReadRows(buffer)
			for _, values := range buffer[:n] {
				r := map[string]string{}
				for _, v := range values {
					if !v.IsNull() {
						r[names[v.Column()][0]] = v.String()
					}
				}
				rows = append(rows, r)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// asCells makes of rows what the suite wants: cells by row key.
func asCells(t *testing.T, f sinktest.Fixture, rows []map[string]string) map[string]map[string][]byte {
	t.Helper()
	out := map[string]map[string][]byte{}
	for _, r := range rows {
		if r["level"] != "11" || r["period"] != "DAY" || r["date"] != "2026-11-29" && r["date"] != "20786" {
			t.Fatalf("row %v", r)
		}
		n, err := strconv.Atoi(r["n"])
		if err != nil {
			t.Fatal(err)
		}
		values := sinktest.Row(n)
		if r["s"] != values[1].Str || r["a"] != strconv.Itoa(n*n) {
			t.Fatalf("row %v", r)
		}
		if b, there := r["b"]; there == values[3].Null || there && b == "" {
			t.Fatalf("row %v", r)
		}
		one := &row.Batch{Width: 4, Values: values}
		want, _ := f.Want(t, n, n+1)
		if one.Len() != 1 || len(want) != 1 {
			t.Fatal("the suite's rows have changed")
		}
		for key, cells := range want {
			if out[key] != nil {
				t.Fatalf("row %v is there twice", r)
			}
			out[key] = cells
		}
	}
	return out
}

// The forms of every kind of type, by hand.
func TestForms(t *testing.T) {
	columns := typed(t, "String", "Bool", "UInt8", "UInt64", "Int64", "UInt256", "Float32", "Float64", "Decimal(9, 2)", "Decimal(18, 3)",
		"Decimal(38, 4)", "Decimal(76, 0)", "Date", "DateTime", "DateTime64(6)", "DateTime64(9)", "UUID", "Nullable(Int32)", "String")
	columns[18].Type.JSON = true
	huge, _ := new(big.Int).SetString("-12345678901234567890123456789", 10)
	values := []row.Value{
		{Kind: row.String, Str: "a \"b\",\n<c>"}, {Kind: row.Bool, Num: 1}, {Kind: row.UInt, Num: 255}, {Kind: row.UInt, Num: 1<<64 - 1},
		{Kind: row.Int, Num: 1 << 63}, {Kind: row.BigInt, Big: new(big.Int).Lsh(big.NewInt(1), 200)},
		{Kind: row.Float, Num: 0x3ff8000000000000}, {Kind: row.Float, Num: 0x7ff0000000000000},
		{Kind: row.Decimal, Big: big.NewInt(-150)}, {Kind: row.Decimal, Big: big.NewInt(5)}, {Kind: row.Decimal, Big: huge}, {Kind: row.Decimal, Big: huge},
		{Kind: row.Date, Num: 20786}, {Kind: row.DateTime, Num: 1796004245}, {Kind: row.DateTime, Num: 1796004245000001}, {Kind: row.DateTime, Num: 1796004245000000002},
		{Kind: row.String, Str: "00000000-0000-0000-0000-000000000001"}, {Kind: row.Int, Null: true}, {Kind: row.String, Str: `[1,{"x":null}]`},
	}
	want := map[job.FileFormat][]string{
		job.NDJSON: {`{"date":"2026-11-29","level":"1","period":"DAY","a":"a \"b\",\n<c>","b":true,"c":255,"d":18446744073709551615,"e":-9223372036854775808,` +
			`"f":1606938044258990275541962092341162602522202993782792835301376,"g":1.5,"h":"Infinity","i":-1.50,"j":0.005,"k":-1234567890123456789012345.6789,` +
			`"l":-12345678901234567890123456789,"m":"2026-11-29","n":"2026-11-30 02:04:05","o":"2026-11-30 02:04:05.000001","p":"2026-11-30 02:04:05.000000002",` +
			`"q":"00000000-0000-0000-0000-000000000001","r":null,"s":[1,{"x":null}]}`},
		job.CSV: {`"date","level","period","a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s"`,
			`"2026-11-29","1","DAY","a ""b"",`, `<c>",true,255,18446744073709551615,-9223372036854775808,1606938044258990275541962092341162602522202993782792835301376,` +
				`1.5,Infinity,-1.50,0.005,-1234567890123456789012345.6789,-12345678901234567890123456789,"2026-11-29","2026-11-30 02:04:05",` +
				`"2026-11-30 02:04:05.000001","2026-11-30 02:04:05.000000002","00000000-0000-0000-0000-000000000001",\N,"[1,{""x"":null}]"`},
	}
	for _, format := range formats {
		c := file.Config{Dir: t.TempDir(), Format: format, Dimensions: columns[:1], Metrics: columns[1:], Levels: []job.Level{{Code: "1", Dimensions: []int{0}}}}
		s, err := file.New(c)
		if err != nil {
			t.Fatal(err)
		}
		f := sinktest.NewFixture(t)
		u := f.Unit
		u.Code = "1"
		w, err := s.Writer(t.Context(), sink.Slice{Unit: u, Name: "0", Attempt: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), &row.Batch{Width: len(values), Values: values}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x")
		if n, err := file.Merge(t.Context(), c, path, s.Parts(u)); err != nil || n != 1 {
			t.Fatalf("%s: %d rows, %v", format, n, err)
		}
		if format == job.Parquet {
			checkSchema(t, path)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[format], strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")); d != "" {
			t.Errorf("%s:\n%s", format, d)
		}
	}
}

func checkSchema(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(f.Schema().String()) {
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"message row {", "required int32 date (DATE);", "required binary level (STRING);", "required binary period (STRING);",
		"required binary a (STRING);", "required boolean b;", "required int32 c (INT(8,false));", "required int64 d (INT(64,false));",
		"required int64 e (INT(64,true));", "required binary f (STRING);", "required float g;", "required double h;",
		"required int32 i (DECIMAL(9,2));", "required int64 j (DECIMAL(18,3));", "required fixed_len_byte_array(16) k (DECIMAL(38,4));",
		"required fixed_len_byte_array(32) l (DECIMAL(76,0));", "required int32 m (DATE);",
		"required int64 n (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS));", "required int64 o (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));",
		"required int64 p (TIMESTAMP(isAdjustedToUTC=true,unit=NANOS));", "required binary q (STRING);", "optional int32 r (INT(32,true));",
		"required binary s (JSON);", "}",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The library shows what is stored: an unsigned number as a signed one.
	row := readParquet(t, text)[0]
	for name, value := range map[string]string{"d": "-1", "e": "-9223372036854775808", "i": "-150", "j": "5", "n": "1796004245000", "o": "1796004245000001", "s": `[1,{"x":null}]`} {
		if row[name] != value {
			t.Errorf("%s is %s, want %s", name, row[name], value)
		}
	}
}

// A part that was cut short is not counted as if it were whole.
func TestCutFile(t *testing.T) {
	for _, format := range formats {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte("\"a\"\n\"b"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := file.Count(t.Context(), format, path); err == nil {
			t.Errorf("%s: %d rows", format, n)
		}
	}
}
