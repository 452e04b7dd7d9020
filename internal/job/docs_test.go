package job_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// What the documents show as a job file is one.
func TestDocumentedJobFilesLoad(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for _, path := range []string{"../../README.md", "../../docs/job-file.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range block.FindAllSubmatch(text, -1) {
			found++
			_, err := job.Parse(path, m[1], job.Options{LookupEnv: func(string) (string, bool) { return "secret", true }})
			if err != nil {
				t.Errorf("%v", err)
			}
		}
		if found == 0 {
			t.Errorf("%s shows no job file", path)
		}
	}
}
