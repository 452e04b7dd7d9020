package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/lab"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
)

// regionServers are those of the shared HBase behind proxies, by their address.
type regionServers map[string]*lab.NetProxy

func proxyHBase(t *testing.T) regionServers {
	t.Helper()
	conn, _, err := zk.Connect([]string{quorum(t)}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	names, _, err := conn.Children("/hbase/rs")
	if err != nil {
		t.Fatal(err)
	}
	servers := regionServers{}
	for _, name := range names { // host,port,start code
		fields := strings.Split(name, ",")
		servers[fields[0]+":"+fields[1]] = lab.Proxy(t, fields[0]+":"+fields[1])
	}
	return servers
}

// nodeMap is what leads a job through the proxies.
func (r regionServers) nodeMap() string {
	to := map[string]string{}
	for address, proxy := range r {
		to[address] = proxy.Addr()
	}
	return nodeMap(to)
}

func nodeMap(to map[string]string) string {
	var pairs []string
	for from, address := range to {
		pairs = append(pairs, fmt.Sprintf("%q: %q", from, address))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// cut ends all connections and refuses new ones.
func (r regionServers) cut() {
	for _, proxy := range r {
		proxy.Disable()
	}
}

// mute keeps all connections, and no answer comes any more.
func (r regionServers) mute() {
	for _, proxy := range r {
		proxy.Timeout(lab.ToClient, 0)
	}
}

// pointers are those that readers of the job follow, by the rest of their key.
func (j *testJob) pointers() map[string]ledger.Pointer {
	j.t.Helper()
	all := map[string]ledger.Pointer{}
	prefix := "pub/" + j.name + "/"
	err := hbaseClient(j.t).ScanRows(j.t.Context(), ledger.Table, []byte(prefix), func(r hbase.Row) error {
		var p ledger.Pointer
		if err := json.Unmarshal(r.Cells[0].Value, &p); err != nil {
			return err
		}
		all[strings.TrimPrefix(string(r.Key), prefix)] = p
		return nil
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return all
}
