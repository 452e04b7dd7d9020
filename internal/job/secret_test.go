package job_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// TestP8SecretNeverShows prints, logs and encodes a job in every way there is.
func TestP8SecretNeverShows(t *testing.T) {
	j := parse(t, base(t), "source.password=hunter2hunter2")
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10s", "%U"} {
		fmt.Fprintf(&out, verb, j.Source.Password)
		fmt.Fprintf(&out, verb, *j)
		fmt.Fprintf(&out, verb, j)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "job", j, "source", j.Source, "password", j.Source.Password)
	}
	encodings := []func(any) ([]byte, error){json.Marshal, xml.Marshal, yaml.Marshal}
	for _, encode := range encodings {
		text, err := encode(j.Source.Password)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	hex := fmt.Sprintf("%x", "hunter2hunter2")
	for _, secret := range []string{"hunter2", hex, strings.ToUpper(hex), "104 117 110"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q shows", secret)
		}
	}
	if !strings.Contains(out.String(), "[redacted]") {
		t.Error("nothing was printed at all")
	}
}

// TestP8MessagesHideThePassword breaks a job file at any place, with the
// password written in every style of YAML: no message shows it.
func TestP8MessagesHideThePassword(t *testing.T) {
	text := base(t)
	rapid.Check(t, func(t *rapid.T) {
		style := rapid.SampledFrom([]string{
			"  password: hunter2hunter2\n", "  password: 'hunter2hunter2'\n", "  \"password\": \"hunter2hunter2\"\n",
			"  password: |\n    hunter2hunter2\n", "  password: >-\n    hunter2hunter2\n    hunter2\n", "  password:\n    hunter2hunter2\n",
			"  password: \"hunter2\n    hunter2\"\n", "  password:\n\n    'hunter2\n\n    hunter2'\n", "  Passwort: hunter2hunter2\n",
			"  password: [hunter2hunter2]\n", "  password: {a: hunter2hunter2}\n", "  password:\n    - hunter2hunter2\n    - hunter2\n",
			"  password: |hunter2hunter2\n", "  password: !!str hunter2hunter2\n", "  password : hunter2hunter2\n", "  ? password\n  : hunter2hunter2\n",
			"  password: \"hunter2hunter2\n", "  password: # why\n    hunter2hunter2\n",
		}).Draw(t, "style")
		broken := strings.Replace(text, "  cluster:", style+"  cluster:", 1)
		for range rapid.IntRange(0, 3).Draw(t, "cuts") {
			at := rapid.IntRange(0, len(broken)-1).Draw(t, "at")
			if p := strings.Index(broken, "asswor"); at > p-8 && at < p+8 {
				continue // a broken key is no password's any more
			}
			broken = broken[:at] + rapid.SampledFrom([]string{"", "\"", "'", "{", "}", "[", "]", ":", "\n", "\t", "#", "&", "*", "|", ",", "  "}).Draw(t, "with") + broken[at+rapid.IntRange(0, 1).Draw(t, "cut"):]
		}
		_, err := job.Parse("job.yaml", []byte(broken), job.Options{})
		if err != nil && strings.Contains(err.Error(), "nter2") {
			t.Fatalf("of\n%s\n%v", broken, err)
		}
	})
}
