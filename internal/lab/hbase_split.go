package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"sync"
)

// Heaps of the small JVMs of a split HBase.
const masterHeap = "768m"

// startSplit starts ZooKeeper first, then the master and the region servers at
// once. Every port is fixed, so that a restarted server comes back in place.
func (h *HBase) startSplit(ctx context.Context, home javaHome, opts HBaseOptions) error {
	zk, err := startZooKeeper(ctx, home, h.sess)
	h.ZooKeeper = zk
	if err != nil {
		return err
	}
	h.quorum = zk.Addr()
	if h.Master, err = h.splitServer(home, opts, "master"); err != nil {
		return err
	}
	for i := range opts.RegionServers {
		rs, err := h.splitServer(home, opts, fmt.Sprintf("regionserver-%d", i+1))
		if err != nil {
			return err
		}
		h.RegionServers = append(h.RegionServers, rs)
	}
	servers := append([]*Server{h.Master}, h.RegionServers...)
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.start(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// splitServer prepares the master or a region server.
func (h *HBase) splitServer(home javaHome, opts HBaseOptions, name string) (*Server, error) {
	port, err := h.sess.freePort()
	if err != nil {
		return nil, err
	}
	j := jvm{name: name, dir: filepath.Join(h.sess.dir, name), heap: opts.Heap, quickStart: !opts.Throughput,
		main: []string{"org.apache.hadoop.hbase.regionserver.HRegionServer", "start"}}
	ready, portKey := "Serving as localhost,", "hbase.regionserver.port"
	if name == "master" {
		j.heap, j.main[0] = masterHeap, "org.apache.hadoop.hbase.master.HMaster"
		ready, portKey = masterReady, "hbase.master.port"
	}
	props := h.properties(opts, h.ZooKeeper.port)
	props["hbase.cluster.distributed"] = "true"
	props["hbase.tmp.dir"] = filepath.Join(j.dir, "tmp")
	props[portKey] = strconv.Itoa(port)
	maps.Copy(props, opts.Properties)
	return j.server(home, props, ready)
}
