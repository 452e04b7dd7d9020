package job

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	referencePath  = "../../docs/job-file.md"
	referenceBegin = "<!-- keys: written by go test ./internal/job -update -->\n"
	referenceEnd   = "<!-- end of keys -->\n"
)

// TestReference keeps the table of keys in the documentation equal to the code.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), referenceBegin)
	_, after, closed := strings.Cut(rest, referenceEnd)
	if !ok || !closed {
		t.Fatalf("%s has lost the marks around the keys", referencePath)
	}
	d := &decoder{job: newJob("")}
	want := before + referenceBegin + "\n" + reference("", d.rootFields()) + referenceEnd + after
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/job -update (-want +got):\n%s", referencePath, diff)
	}
}

// reference writes a table of the keys of a mapping, then those of the
// mappings in it.
func reference(path string, fields []field) string {
	title := "Top level"
	if path != "" {
		title = "`" + path + "`"
	}
	var table, nested strings.Builder
	fmt.Fprintf(&table, "### %s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", title)
	var refused []string
	for _, f := range fields {
		if f.later {
			refused = append(refused, "`"+f.key+"`")
			continue
		}
		def := f.def
		if f.required {
			def = "**required**"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.key, f.typ, def, strings.ReplaceAll(f.doc, "|", "\\|"))
		switch {
		case f.element != nil:
			nested.WriteString(reference(join(path, f.key)+"[]", f.element))
		case f.byName != nil:
			nested.WriteString(reference(join(path, f.key)+".*", f.byName))
		case f.fields != nil:
			nested.WriteString(reference(join(path, f.key), f.fields))
		}
	}
	if refused != nil {
		fmt.Fprintf(&table, "\nNot supported yet, and refused: %s.\n", strings.Join(refused, ", "))
	}
	return table.String() + "\n" + nested.String()
}

// TestEveryFieldIsDocumented wants a type, a meaning, and a default or
// "required" for every key.
func TestEveryFieldIsDocumented(t *testing.T) {
	d := &decoder{job: newJob("")}
	var walk func(path string, fields []field)
	walk = func(path string, fields []field) {
		for _, f := range fields {
			if f.later {
				continue
			}
			if f.typ == "" || f.doc == "" || f.required == (f.def != "") {
				t.Errorf("%s: type %q, default %q, required %v, doc %q", join(path, f.key), f.typ, f.def, f.required, f.doc)
			}
			walk(join(path, f.key), f.fields)
			walk(join(path, f.key), f.element)
			walk(join(path, f.key), f.byName)
		}
	}
	walk("", d.rootFields())
}
