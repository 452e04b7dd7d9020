package lab

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed assets/hbase-pom.xml
var hbasePom string

//go:embed assets/hbase-jars.sha256
var hbaseJars string

// javaHome is what a JVM of the lab is started with.
type javaHome struct {
	java string // path of the java binary
	jars string // directory of HBase's and ZooKeeper's jars
}

// hbase returns Java and the jars of HBase and ZooKeeper (180 jars, 117 MB).
func (p *preparer) hbase(ctx context.Context) (javaHome, error) {
	if err := p.demand(ctx, hasJDK17()); err != nil {
		return javaHome{}, err
	}
	dir, err := p.once(ctx, "hbase-2.6.4-hadoop3", p.copyJars)
	return javaHome{java: javaBinary(), jars: filepath.Join(dir, "jars")}, err
}

func (p *preparer) copyJars(ctx context.Context, dir string) error {
	if err := p.demand(ctx, hasMaven()); err != nil {
		return err
	}
	pom, jars := filepath.Join(dir, "pom.xml"), filepath.Join(dir, "jars")
	if err := os.WriteFile(pom, []byte(hbasePom), 0o644); err != nil {
		return err
	}
	return p.retry(ctx, func() error {
		err := p.run(ctx, "downloading HBase 2.6.4 (117 MB)", []string{"JAVA_HOME=" + filepath.Dir(filepath.Dir(javaBinary()))},
			"mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+jars)
		if err != nil {
			return err
		}
		return verifyFiles(jars, hbaseJars)
	})
}

// verifyFiles checks that dir holds exactly the files of a sha256sum list.
func verifyFiles(dir, list string) error {
	want := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return fmt.Errorf("list of hashes: bad line %q", lines.Text())
		}
		want[name] = sum
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		sum, err := fileSHA256(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if want[e.Name()] != sum {
			return fmt.Errorf("%w: %s has %s, want %q", errHash, e.Name(), sum, want[e.Name()])
		}
		delete(want, e.Name())
	}
	for name := range want {
		return fmt.Errorf("%w: %s is missing", errHash, name)
	}
	return nil
}
