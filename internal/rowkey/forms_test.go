package rowkey

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
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
		case isCell:
			checkCell(t, job.Encoding(encoding), typeOf(t, typ), input, want)
		default:
			checkKey(t, what, typ, input, want)
		}
	}
	if len(seen) != 57 || seen["salt"] < 400 {
		t.Errorf("vectors seen: %v", seen)
	}
}

func checkKey(t *testing.T, template, typ, input string, want []byte) {
	t.Helper()
	typ, buckets, salted := strings.Cut(typ, " ")
	if strings.HasPrefix(buckets, "2)") || strings.HasSuffix(typ, ",") { // Decimal(38, 2) has a space
		typ, salted = typ+" "+buckets, false
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
