package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// HBaseOptions describe an HBase. The zero value is one JVM with a master, a
// ZooKeeper and two region servers, which starts in some seconds.
type HBaseOptions struct {
	// Split runs ZooKeeper, the master and each region server in a JVM of its
	// own, so that one can be killed. A dead region server's regions move after
	// SessionTimeout.
	Split bool
	// RegionServers is their number; 0 means 2.
	RegionServers int
	// Heap is the heap of the one JVM, or of each region server of a split
	// HBase, as Java writes it; "" means 4g, or 1g when split.
	Heap string
	// SessionTimeout is how long a region server may be silent before the
	// master gives its regions to others; 0 means 180 s, or 20 s when split.
	SessionTimeout time.Duration
	// Throughput chooses JVM settings for benchmarks, which start some seconds
	// later and serve faster. The default is a quick start.
	Throughput bool
	// Properties are added to hbase-site.xml, over the lab's own.
	Properties map[string]string
	// Log receives progress; nil means standard error.
	Log *slog.Logger
}

func (o HBaseOptions) withDefaults() HBaseOptions {
	if o.RegionServers == 0 {
		o.RegionServers = 2
	}
	if o.Heap == "" {
		o.Heap = "4g"
		if o.Split {
			o.Heap = "1g"
		}
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 180 * time.Second
		if o.Split {
			o.SessionTimeout = 20 * time.Second
		}
	}
	o.Log = orStderr(o.Log)
	return o
}

// HBase is a running HBase 2.6. Its files are on the local file system without
// HDFS: what it acknowledged survives the death of a process, not of the
// machine.
type HBase struct {
	// Master is the JVM with the master; of an HBase that is not split, the
	// only one, with everything in it.
	Master *Server
	// RegionServers and ZooKeeper are processes of their own in a split HBase,
	// and nil otherwise.
	RegionServers []*Server
	ZooKeeper     *ZooKeeper

	quorum string
	sess   *session
	shared bool // used by other tests or owned by another process
}

// Quorum is the host:port of ZooKeeper.
func (h *HBase) Quorum() string { return h.quorum }

// ZNode is the parent node in ZooKeeper.
func (h *HBase) ZNode() string { return "/hbase" }

// StartHBase starts an HBase that belongs to the caller and returns when its
// master is initialized and the region servers are there. The caller must call
// Stop. ctx bounds the start only.
func StartHBase(ctx context.Context, opts HBaseOptions) (*HBase, error) {
	opts = opts.withDefaults()
	p, err := newPreparer(opts.Log)
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
	h := &HBase{sess: sess}
	start := h.startOne
	if opts.Split {
		start = h.startSplit
	}
	if err := start(ctx, home, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("start HBase: %w", err), h.Stop())
	}
	return h, nil
}

// properties are common to both forms.
func (h *HBase) properties(opts HBaseOptions, port int) map[string]string {
	n := strconv.Itoa(opts.RegionServers)
	return map[string]string{
		"hbase.rootdir": "file://" + filepath.Join(h.sess.dir, "root"),
		"hbase.tmp.dir": filepath.Join(h.sess.dir, "tmp"),
		// A local file system cannot promise hflush; without this nothing starts.
		"hbase.unsafe.stream.capability.enforce":  "false",
		"hbase.wal.provider":                      "filesystem",
		"hbase.zookeeper.quorum":                  "127.0.0.1",
		"hbase.zookeeper.property.clientPort":     strconv.Itoa(port),
		"hbase.zookeeper.property.dataDir":        filepath.Join(h.sess.dir, "zookeeper-data"),
		"hbase.zookeeper.property.maxClientCnxns": "0",
		"zookeeper.session.timeout":               millis(opts.SessionTimeout),
		"hbase.master.hostname":                   "localhost",
		"hbase.regionserver.hostname":             "localhost",
		"hbase.master.ipc.address":                "127.0.0.1",
		"hbase.regionserver.ipc.address":          "127.0.0.1",
		"hbase.master.info.port":                  "-1",
		"hbase.regionserver.info.port":            "-1",
		"hbase.regionserver.handler.count":        "30",
		// The master need not wait for more region servers than there will be.
		"hbase.master.wait.on.regionservers.mintostart": n,
		"hbase.master.wait.on.regionservers.maxtostart": n,
		"hbase.master.wait.on.regionservers.interval":   "100",
		"hbase.regionserver.msginterval":                "500",
	}
}

func (h *HBase) startOne(ctx context.Context, home javaHome, opts HBaseOptions) error {
	port, err := h.sess.freePort()
	if err != nil {
		return err
	}
	h.quorum = loopback(port)
	props := h.properties(opts, port)
	props["hbase.cluster.distributed"] = "false"
	props["hbase.localcluster.assign.random.ports"] = "true"
	// The one-JVM form ignores zookeeper.session.timeout and reads this; its
	// ZooKeeper allows at most 20 ticks.
	props["zookeeper.session.timeout.localHBaseCluster"] = millis(opts.SessionTimeout)
	props["hbase.zookeeper.property.tickTime"] = millis(opts.SessionTimeout/20 + time.Millisecond)
	maps.Copy(props, opts.Properties)
	j := jvm{name: "hbase", dir: filepath.Join(h.sess.dir, "hbase"), heap: opts.Heap, quickStart: !opts.Throughput,
		main: []string{"org.apache.hadoop.hbase.master.HMaster", "--localRegionServers=" + strconv.Itoa(opts.RegionServers), "start"}}
	h.Master, err = j.server(home, props, masterReady)
	if err != nil {
		return err
	}
	return h.Master.start(ctx)
}

// masterReady is the master's word that regions can be created.
const masterReady = "Master has completed initialization"

// server prepares a JVM that is ready when its log says so.
func (j jvm) server(home javaHome, props map[string]string, ready string) (*Server, error) {
	if err := j.writeConf(props); err != nil {
		return nil, err
	}
	return &Server{Name: j.name, spec: j.spec(home), grace: 30 * time.Second,
		ready: func(_ context.Context, p *proc) error {
			if !strings.Contains(p.log(), ready) {
				return fmt.Errorf("its log does not say %q yet", ready)
			}
			return nil
		}}, nil
}

// Stop ends all processes and removes their files, tables and all. Only for an
// HBase that the caller started.
func (h *HBase) Stop() error {
	if h.shared {
		return fmt.Errorf("stop HBase: %w", ErrShared)
	}
	var errs []error
	for _, s := range h.servers() {
		errs = append(errs, s.discard())
	}
	return errors.Join(append(errs, h.sess.close())...)
}

func (h *HBase) servers() []*Server {
	all := append([]*Server{}, h.RegionServers...)
	if h.Master != nil {
		all = append(all, h.Master)
	}
	if h.ZooKeeper != nil {
		all = append(all, h.ZooKeeper.Server)
	}
	return all
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
