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
