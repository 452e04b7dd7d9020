package rowkey

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// TestForms compares keys and cells with bytes that HBase's and Phoenix's own
// classes made, and reads them back.
func TestForms(t *testing.T) {
	f, err := os.Open("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 4 {
			t.Fatalf("line %q", s.Text())
		}
		what, typ, input := fields[0], fields[1], fields[2]
		want, err := hex.DecodeString(fields[3])
		if err != nil {
			t.Fatal(err)
		}
		seen[what]++
		encoding, isCell := strings.CutPrefix(what, "cell ")
		switch {
		case what == "salt":
			checkSalt(t, typ, input, want)
		case what == "packed":
			checkPacked(t, typeOf(t, typ), input, want)
		case isCell:
			checkCell(t, job.Encoding(encoding), typeOf(t, typ), input, want)
		default:
			checkKey(t, what, typ, input, want)
		}
	}
	if seen["salt"] < 400 || seen["packed"] < 20 {
		t.Errorf("vectors seen: %v", seen)
	}
	everyForm(t, seen)
}

// everyForm wants a vector of each form, backwards too where that is possible, and of
// each encoding. The rest of the encodings is in golden.txt.
func everyForm(t *testing.T, seen map[string]int) {
	t.Helper()
	has := func(field string) bool {
		for what := range seen {
			if strings.Contains(what, field) {
				return true
			}
		}
		return false
	}
	for _, form := range append(slices.Clone(knownForms), "", "020", "06", "dd.MM.yyyy", "rev:be2", "rev:be4", "rev:be8", "rev:010", "rev:yyyyMMdd", "rev:esc") {
		switch form {
		case "":
			if !has("{d}") {
				t.Error("{d} has no vector")
			}
			continue
		case "010", "yyyy-MM-dd": // others of their kind are there
			continue
		}
		if !has("{d:" + form + "}") {
			t.Errorf("{d:%s} has no vector", form)
		}
		varies := slices.Contains([]string{"esc", "rev", "06", "dd.MM.yyyy"}, form) || strings.HasPrefix(form, "rev:")
		if !varies && !has("{d:desc:"+form+"}") {
			t.Errorf("{d:desc:%s} has no vector", form)
		}
	}
	for p := phoenixUnsignedLong; p <= phoenixVarchar; p++ {
		if !has("cell " + p.String()) {
			t.Errorf("the encoding %s has no vector", p)
		}
	}
	for _, what := range []string{"cell text", "{md5:d}"} {
		if !has(what) {
			t.Errorf("%s has no vector", what)
		}
	}
}

func checkPacked(t *testing.T, typ row.Type, input string, want []byte) {
	t.Helper()
	v, err := ParseText(typ, input, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := packOne(t, job.Metric{}, typ)
	got, _, err := c.Append(nil, 0, []row.Value{v})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("packed %s of %s: %s, Java made %s; %v", input, typ.Name, got, want, err)
	}
	back, err := c.Decode(func(int) ([]byte, bool) { return want, true })
	if shown := ValueJSON(typ, v, nil); err != nil || back[0] != shown {
		t.Errorf("packed %s of %s reads back as %v, want %v; %v", input, typ.Name, back, shown, err)
	}
}

func checkKey(t *testing.T, template, typ, input string, want []byte) {
	t.Helper()
	buckets, salted := "", false
	if !strings.HasSuffix(typ, ")") { // Decimal(38, 2) has a space
		typ, buckets, salted = strings.Cut(typ, " ")
	}
	c := config(template, Dim{Name: "d", Type: typeOf(t, typ)})
	if salted {
		c.Salt = &job.Salt{Hash: job.SaltPhoenix, Binary: true}
		c.Salt.Buckets, _ = strconv.Atoi(buckets)
	}
	codec, err := Compile(c)
	if err != nil {
		t.Error(err)
		return
	}
	v, err := ParseText(c.Dims[0].Type, input, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := codec.AppendKey([]byte("before"), unit(0), []row.Value{v})
	key = bytes.TrimPrefix(key, []byte("before"))
	if err != nil || !bytes.Equal(key, want) {
		t.Errorf("%s of %s %s: %x, Java made %x; %v", template, typ, input, key, want, err)
		return
	}
	k, err := codec.Decode(key)
	if err != nil || !sameValue(k.Dims[0], v) {
		t.Errorf("%s of %s %s: Decode gives %+v, %v", template, typ, input, k, err)
	}
}

func sameValue(a, b row.Value) bool {
	if a.Big != nil && b.Big != nil && a.Big.Cmp(b.Big) == 0 {
		a.Big, b.Big = nil, nil
	}
	return cmp.Equal(a, b)
}

func checkCell(t *testing.T, encoding job.Encoding, typ row.Type, input string, want []byte) {
	t.Helper()
	v, err := ParseText(typ, input, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cellOf(t, encoding, typ, v); !bytes.Equal(got, want) {
		t.Errorf("%s of %s: %x, Java made %x", encoding, input, got, want)
	}
	c, err := CompileCells([]job.Metric{{Name: "m", Encode: encoding}}, []row.Type{typ}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.DecodeCell(0, want)
	if shown := ValueJSON(typ, v, nil); err != nil || got != shown {
		t.Errorf("%s of %s: Decode gives %v, want %v; %v", encoding, input, got, shown, err)
	}
}

// saltOf reads "crc32 hex buckets 16".
func saltOf(t *testing.T, text string) *job.Salt {
	t.Helper()
	words := strings.Fields(text)
	n, err := strconv.Atoi(words[3])
	if err != nil {
		t.Fatal(err)
	}
	s := &job.Salt{Hash: job.SaltHash(words[0]), Binary: words[1] == "binary"}
	if s.Hash == "md5" {
		s.Hash = job.SaltMD5
	}
	if s.Buckets = n; words[2] == "prefix" {
		s.Buckets, s.Prefix = 0, n
	}
	return s
}

func checkSalt(t *testing.T, salt, input string, want []byte) {
	t.Helper()
	c := config("{salt}")
	c.Salt = saltOf(t, salt)
	var values []row.Value
	fields := strings.Fields(input)
	for i, field := range fields {
		raw, err := hex.DecodeString(field)
		if err != nil {
			t.Fatal(err)
		}
		d := Dim{Name: "d" + strconv.Itoa(i), Type: row.Type{Name: "FixedString", Base: "FixedString", Kind: row.String, Length: len(raw)}}
		c.Template += "{" + d.Name + "}"
		c.Dims = append(c.Dims, d)
		c.Levels[0].Dimensions = append(c.Levels[0].Dimensions, i)
		c.Salt.Over = append(c.Salt.Over, i)
		values = append(values, row.Value{Kind: row.String, Str: string(raw)})
	}
	codec, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	key, err := codec.AppendKey(nil, unit(0), values)
	if err != nil || !bytes.HasPrefix(key, want) || len(want) != c.Salt.Width() {
		t.Errorf("salt %s over %s: %x of %d bytes, Java made %x; %v", salt, input, key, c.Salt.Width(), want, err)
	}
	if _, err := codec.Decode(key); err != nil {
		t.Error(err)
	}
}
