package lab

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "embed"
)

//go:embed assets/log4j.properties
var log4jProperties string

// jvm describes one Java server.
type jvm struct {
	name       string
	dir        string // of its files; holds conf/
	heap       string // as in -Xmx
	quickStart bool   // compile less: up sooner, slower under load
	main       []string
}

func (h javaHome) command(j jvm) []string {
	argv := []string{h.java, "-Xmx" + j.heap, "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true",
		"-Djava.io.tmpdir=" + j.dir, "-XX:-UsePerfData"}
	if j.quickStart {
		argv = append(argv, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	} else {
		// G1 would pause less, but on two cores its threads compete with the
		// servers' own.
		argv = append(argv, "-XX:+UseParallelGC")
	}
	argv = append(argv, moduleFlags()...)
	argv = append(argv, "-cp", filepath.Join(j.dir, "conf")+":"+filepath.Join(h.jars, "*"))
	return append(argv, j.main...)
}

// moduleFlags are what HBase's own start script passes on Java 17.
func moduleFlags() []string {
	flags := []string{
		"-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
		"--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
		"--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
	}
	for pkg := range strings.FieldsSeq("jdk.internal.misc java.nio java.lang sun.nio.ch java.lang.reflect java.util java.util.concurrent") {
		flags = append(flags, "--add-opens=java.base/"+pkg+"=ALL-UNNAMED")
	}
	return flags
}

// writeConf writes hbase-site.xml and the logging configuration.
func (j jvm) writeConf(properties map[string]string) error {
	conf := filepath.Join(j.dir, "conf")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		return fmt.Errorf("configure %s: %w", j.name, err)
	}
	var site strings.Builder
	site.WriteString("<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		site.WriteString("  <property><name>" + escapeXML(name) + "</name><value>" + escapeXML(properties[name]) + "</value></property>\n")
	}
	site.WriteString("</configuration>\n")
	files := map[string]string{"hbase-site.xml": site.String(), "log4j.properties": log4jProperties}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("configure %s: %w", j.name, err)
		}
	}
	return nil
}

func (j jvm) spec(h javaHome) procSpec {
	return procSpec{name: j.name, argv: h.command(j), dir: j.dir, logPath: filepath.Join(j.dir, "console.log")}
}

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
