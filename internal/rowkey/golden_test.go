package rowkey

import (
	"bufio"
	"encoding/hex"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// typeOf parses a type that the test knows to be right.
func typeOf(t testing.TB, name string) row.Type {
	t.Helper()
	typ, err := row.ParseType(name)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// cellOf encodes one value as one metric.
func cellOf(t testing.TB, encoding job.Encoding, typ row.Type, v row.Value) []byte {
	t.Helper()
	c, err := CompileCells([]job.Metric{{Name: "m", Encode: encoding}}, []row.Type{typ}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, present, err := c.Append(nil, 0, []row.Value{v})
	if err != nil || !present {
		t.Fatalf("Append(%v): %v, %v", v, present, err)
	}
	return out
}

// keyOf encodes one dimension by a template.
func keyOf(t testing.TB, template, typ, text string) []byte {
	t.Helper()
	c := mustCompile(t, template, Dim{Name: "d", Type: typeOf(t, typ)})
	v, err := ParseText(typeOf(t, typ), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.AppendKey(nil, unit(0), []row.Value{v})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestGolden compares with bytes that HBase's own Bytes class made.
func TestGolden(t *testing.T) {
	f, err := os.Open("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kinds := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 3 {
			t.Fatalf("line %q", s.Text())
		}
		kinds[fields[0]]++
		if got := hex.EncodeToString(golden(t, fields[0], fields[1])); got != fields[2] {
			t.Errorf("%s of %q: %s, Java made %s", fields[0], fields[1], got, fields[2])
		}
	}
	if len(kinds) != 11 || kinds["int64"] < 30 || kinds["salt"] < 30 {
		t.Errorf("vectors seen: %v", kinds)
	}
}

func golden(t *testing.T, kind, input string) []byte {
	t.Helper()
	switch kind {
	case "int64", "int32":
		typ := typeOf(t, "Int"+kind[3:])
		v, err := ParseText(typ, input, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cellOf(t, job.Encoding(kind), typ, v)
	case "be8s", "be4s":
		return keyOf(t, "{d:"+kind+"}", "Int64", input)
	case "ube8", "ube4":
		return keyOf(t, "{d:"+kind[1:]+"}", "UInt64", input)
	case "float64":
		x, err := strconv.ParseFloat(input, 64)
		if err != nil {
			t.Fatal(err)
		}
		return cellOf(t, job.EncodeFloat64, typeOf(t, "Float64"), row.Value{Kind: row.Float, Num: math.Float64bits(x)})
	case "decimal":
		_, fraction, _ := strings.Cut(input, ".")
		typ := typeOf(t, "Decimal(76, "+strconv.Itoa(len(fraction))+")")
		v, err := ParseText(typ, input, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cellOf(t, job.EncodeDecimal, typ, v)
	case "bool":
		v, err := ParseText(typeOf(t, "Bool"), input, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cellOf(t, job.EncodeBool, typeOf(t, "Bool"), v)
	case "string":
		return cellOf(t, job.EncodeAuto, typeOf(t, "String"), row.Value{Kind: row.String, Str: input})
	case "salt":
		return goldenSalt(t, input)
	}
	t.Fatalf("unknown vector %q", kind)
	return nil
}

// goldenSalt gives the salt of a key over the given fields.
func goldenSalt(t *testing.T, input string) []byte {
	t.Helper()
	buckets, rest, _ := strings.Cut(input, " ")
	n, err := strconv.Atoi(buckets)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Template: "{salt}", Salt: &job.Salt{Buckets: n}, Levels: []job.Level{{}}, Periods: []job.Period{"DAY"}}
	var values []row.Value
	for i, field := range strings.Split(rest, " ") {
		name := "d" + strconv.Itoa(i)
		raw, err := hex.DecodeString(field)
		if err != nil {
			t.Fatal(err)
		}
		config.Template += "|{" + name + ":esc}"
		if i == len(strings.Split(rest, " "))-1 {
			config.Template = strings.TrimSuffix(config.Template, ":esc}") + "}"
		}
		config.Dims = append(config.Dims, Dim{Name: name, Type: typeOf(t, "String")})
		config.Levels[0].Dimensions = append(config.Levels[0].Dimensions, i)
		config.Salt.Over = append(config.Salt.Over, i)
		values = append(values, row.Value{Kind: row.String, Str: string(raw)})
	}
	c, err := Compile(config)
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.AppendKey(nil, unit(0), values)
	if err != nil {
		t.Fatal(err)
	}
	return key[:len(strconv.FormatInt(int64(n-1), 16))]
}
