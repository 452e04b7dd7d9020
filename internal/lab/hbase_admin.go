package lab

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed assets/LabAdmin.java
var labAdmin []byte

// Admin gives an administrator's orders with HBase's own client and returns
// when they have been carried out, one after the other: "flush", TABLE;
// "major_compact", TABLE; "split", TABLE, KEY; "move", TABLE, KEY, which takes the
// region of the key to another server; "durability", TABLE, VALUE. Keys are as in HBase's shell, with \x00
// for bytes that are no text. A call takes some seconds: a JVM starts.
func (h *HBase) Admin(ctx context.Context, orders ...string) error {
	p, err := newPreparer(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	home, err := p.hbase(ctx)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(h.quorum)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ck2hbase-admin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "LabAdmin.java")
	if err := os.WriteFile(source, labAdmin, 0o644); err != nil {
		return err
	}
	j := jvm{name: "admin", dir: dir, heap: "256m", quickStart: true, main: append([]string{source, port}, orders...)}
	if err := j.writeConf(nil); err != nil {
		return err
	}
	argv := home.command(j)
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("administrator's orders %q: %w\n%s", orders, err, out)
	}
	return nil
}
