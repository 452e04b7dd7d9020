package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ZooKeeper is one stand-alone ZooKeeper server.
type ZooKeeper struct {
	*Server

	port int
	sess *session // nil when it belongs to an HBase
}

// Addr is its host:port.
func (z *ZooKeeper) Addr() string { return loopback(z.port) }

// StartZooKeeper starts a ZooKeeper that belongs to the caller, for the
// replicated tables of 18.16. The caller must call Close.
func StartZooKeeper(ctx context.Context, log *slog.Logger) (*ZooKeeper, error) {
	p, err := newPreparer(log)
	if err != nil {
		return nil, err
	}
	home, err := p.hbase(ctx)
	if err != nil {
		return nil, err
	}
	sess, err := newSession()
	if err != nil {
		return nil, err
	}
	z, err := startZooKeeper(ctx, home, sess)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start ZooKeeper: %w", err), sess.close())
	}
	z.sess = sess
	return z, nil
}

func startZooKeeper(ctx context.Context, home javaHome, sess *session) (*ZooKeeper, error) {
	port, err := sess.freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(sess.dir, "zookeeper")
	j := jvm{name: "zookeeper", dir: dir, heap: "256m", quickStart: true,
		main: []string{"org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(dir, "zoo.cfg")}}
	if err := j.writeConf(nil); err != nil {
		return nil, err
	}
	// Long sessions are allowed: a loaded two-core machine pauses for seconds.
	cfg := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%d\n"+
		"maxClientCnxns=0\nmaxSessionTimeout=300000\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,srvr\n", dir, port)
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(cfg), 0o644); err != nil {
		return nil, err
	}
	z := &ZooKeeper{port: port, Server: &Server{Name: j.name, spec: j.spec(home), grace: 10 * time.Second}}
	z.ready = func(ctx context.Context, _ *proc) error { return z.serving(ctx) }
	return z, z.start(ctx)
}

// serving asks in ZooKeeper's own words: it opens its port some time before it
// takes sessions.
func (z *ZooKeeper) serving(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", z.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if !strings.Contains(string(answer), "Mode:") {
		return fmt.Errorf("it answers %q", answer)
	}
	return nil
}

// Close ends the server and removes its files.
func (z *ZooKeeper) Close() error {
	if z.sess == nil {
		return fmt.Errorf("stop ZooKeeper: %w", ErrShared)
	}
	return errors.Join(z.discard(), z.sess.close())
}
