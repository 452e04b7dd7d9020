package hbase

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// TestRegionsOfLikeNames: the regions of a table are told from those of tables
// whose names begin with its name, as "t" from "t-old" and "t1".
func TestRegionsOfLikeNames(t *testing.T) {
	c := dialLab(t)
	name := fmt.Sprintf("like_%d", time.Now().UnixNano())
	for i, table := range []string{name, name + "-old", name + "1", name + ".x"} {
		spec := TableSpec{Name: table, Family: "f", Create: job.Create{Versions: 1}}
		for k := range i {
			spec.Splits = append(spec.Splits, []byte{byte('a' + k)})
		}
		if err := c.CreateTable(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.DropTable(t.Context(), table); err != nil {
				t.Error(err)
			}
		}()
	}
	for i, table := range []string{name, name + "-old", name + "1", name + ".x"} {
		if regions, err := c.Regions(t.Context(), table); err != nil || len(regions) != i+1 {
			t.Errorf("%s: %v, %v, want %d", table, regions, err, i+1)
		}
	}
}

// TestTrapsAreTested: the tests that docs/hbase-traps.md names are there.
func TestTrapsAreTested(t *testing.T) {
	doc, err := os.ReadFile("../../docs/hbase-traps.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, dir := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := regexp.MustCompile("`(Test[^`]*)`").FindAllSubmatch(doc, -1)
	if len(named) < 30 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, m := range named {
		if !strings.Contains(tests.String(), "func "+string(m[1])+"(") {
			t.Errorf("there is no %s", m[1])
		}
	}
}
