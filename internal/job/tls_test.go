package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// withFiles writes the base job file and what it names into one directory, and
// loads it with overrides.
func withFiles(t *testing.T, files map[string]string, overrides ...string) (*job.Job, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "job.yaml")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(base(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return job.Load(path, job.Options{LookupEnv: env, Overrides: overrides})
}

// An address without a port gets the one of the way that the job goes.
func TestDefaultPorts(t *testing.T) {
	for _, tc := range []struct {
		want      string
		overrides []string
	}{
		{"ck1:9000", nil},
		{"ck1:9000", []string{"source.protocol=native"}},
		{"ck1:9440", []string{"source.tls={}"}},
		{"ck1:8123", []string{"source.protocol=http"}},
		{"ck1:8443", []string{"source.protocol=http", "source.tls={}"}},
	} {
		j, err := withFiles(t, nil, append(tc.overrides, "source.addresses=[ck1]")...)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Source.Addresses[0]; got != tc.want || (j.Source.TLS != nil) != strings.Contains(strings.Join(tc.overrides, ""), "tls") {
			t.Errorf("%v: %s, TLS %v; want %s", tc.overrides, got, j.Source.TLS, tc.want)
		}
	}
}

// The files of tls are read relative to the job file and checked at once; no
// message shows what is in them.
func TestTLSFiles(t *testing.T) {
	authority := lab.NewAuthority(t)
	cert, key := authority.Issue(t, "ck1", false)
	_, otherKey := authority.Issue(t, "ck1", false)
	files := map[string]string{"ca.pem": string(authority.PEM), "cert.pem": string(cert), "key.pem": string(key), "other.pem": string(otherKey), "text.pem": "hunter2"}
	all := "source.tls={ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem, server_name: ck1.internal}"
	j, err := withFiles(t, files, all)
	if err != nil {
		t.Fatal(err)
	}
	if tls := j.Source.TLS; string(tls.CA) != files["ca.pem"] || string(tls.Cert) != files["cert.pem"] || string(tls.Key) != files["key.pem"] || tls.ServerName != "ck1.internal" {
		t.Errorf("read %+v", tls)
	}
	for override, want := range map[string]string{
		"{ca_file: none.pem}":                        "source.tls.ca_file: open",
		"{ca_file: text.pem}":                        "holds no certificate",
		"{cert_file: cert.pem}":                      "a certificate without its key",
		"{key_file: key.pem}":                        "a key without its certificate",
		"{cert_file: cert.pem, key_file: other.pem}": "private key does not match public key",
		"{cert_file: text.pem, key_file: text.pem}":  "cannot be used",
		"{server_name: 'https://ck1'}":               "not a host's name",
		"{verify: none}":                             "unknown key",
		"true":                                       "source.tls wants a mapping",
	} {
		_, err := withFiles(t, files, "source.tls="+override)
		if failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", override, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("%s shows a file: %v", override, err)
		}
	}
	if _, err := withFiles(t, nil, "source.protocol=tcp"); failure.ClassOf(err) != failure.Usage || !strings.Contains(err.Error(), "native, http") {
		t.Errorf("an unknown protocol: %v", err)
	}
}
