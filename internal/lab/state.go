package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// EnvLab names the environment variable that holds the path of the state file
// of a running lab; tests then use its servers.
const EnvLab = "CK2HBASE_LAB"

// State describes a running lab to other processes. It is what
// .cache/lab/state.json holds.
type State struct {
	PID           int              `json:"pid"`        // the owner; its end is the lab's
	StartTime     string           `json:"start_time"` // of the owner, in clock ticks since boot
	Started       time.Time        `json:"started"`
	ClickHouse    *ClickHouseState `json:"clickhouse,omitempty"`     // 26.9
	OldClickHouse *ClickHouseState `json:"clickhouse_old,omitempty"` // 18.16
	HBase         *HBaseState      `json:"hbase,omitempty"`
}

// ClickHouseState describes a cluster.
type ClickHouseState struct {
	Cluster   string      `json:"cluster"` // its name in remote_servers
	Version   string      `json:"version"`
	ZooKeeper string      `json:"zookeeper,omitempty"`
	User      string      `json:"user"` // has the password below
	Password  string      `json:"password"`
	Nodes     []NodeState `json:"nodes"`
}

// ServerState names a process. Its start time, in clock ticks since boot, tells
// it from a later one with the same id.
type ServerState struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	StartTime string `json:"start_time"`
}

// Alive tells whether the process still exists.
func (s ServerState) Alive() bool { return sameProcess(s.PID, s.StartTime) }

// NodeState describes a ClickHouse node.
type NodeState struct {
	ServerState

	Shard   int    `json:"shard"`
	Replica int    `json:"replica"`
	TCP     string `json:"tcp"`  // host:port
	HTTP    string `json:"http"` // host:port
}

// HBaseState describes an HBase.
type HBaseState struct {
	Quorum  string        `json:"quorum"` // host:port of ZooKeeper
	ZNode   string        `json:"znode"`
	Servers []ServerState `json:"servers"`
}

// DefaultStatePath is where `lab up` keeps its state.
func DefaultStatePath() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "lab", "state.json"), nil
}

// Write stores the state in one step: readers see all of it or nothing.
func (s *State) Write(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	if err := os.WriteFile(path+".part", append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	return nil
}

// ReadState reads a state file. The error is os.ErrNotExist when no lab was
// started, and ErrLabGone when its owner is dead.
func ReadState(path string) (*State, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lab state: %w", err)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read lab state %s: %w", path, err)
	}
	if !sameProcess(s.PID, s.StartTime) {
		return &s, fmt.Errorf("lab of %s: %w", path, ErrLabGone)
	}
	return &s, nil
}

// ErrLabGone says that a state file outlived its lab.
var ErrLabGone = errors.New("the process that owned it is gone")

// End asks the lab's owner to end, waits, and kills it when it takes longer
// than wait; the kernel then kills the servers.
func (s *State) End(wait time.Duration) error {
	if !sameProcess(s.PID, s.StartTime) {
		return nil
	}
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end lab (pid %d): %w", s.PID, err)
	}
	for deadline := time.Now().Add(wait); sameProcess(s.PID, s.StartTime); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return syscall.Kill(s.PID, syscall.SIGKILL)
		}
	}
	return nil
}

func (s *Server) state() ServerState {
	pid := s.PID()
	return ServerState{s.Name, pid, processStart(pid)}
}

func (c *Cluster) state() *ClickHouseState {
	s := &ClickHouseState{Cluster: ClusterName, Version: c.Version, ZooKeeper: c.ZooKeeper, User: MoverUser, Password: MoverPassword}
	for _, n := range c.Nodes {
		s.Nodes = append(s.Nodes, NodeState{n.state(), n.Shard, n.Replica, n.TCPAddr(), n.HTTPAddr()})
	}
	return s
}

func (h *HBase) state() *HBaseState {
	s := &HBaseState{Quorum: h.Quorum(), ZNode: h.ZNode()}
	for _, server := range h.servers() {
		s.Servers = append(s.Servers, server.state())
	}
	return s
}

// hbase gives access to an HBase of another process.
func (s *HBaseState) hbase() *HBase {
	h := &HBase{quorum: s.Quorum, shared: true}
	for _, server := range s.Servers {
		if server.Name == "hbase" || server.Name == "master" {
			h.Master = &Server{Name: server.Name, shared: true, pid: server.PID}
		}
	}
	return h
}

// cluster gives access to a cluster of another process.
func (s *ClickHouseState) cluster(old bool) (*Cluster, error) {
	c := &Cluster{Version: s.Version, Old: old, ZooKeeper: s.ZooKeeper, shared: true}
	for _, n := range s.Nodes {
		tcp, err1 := portOf(n.TCP)
		http, err2 := portOf(n.HTTP)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("lab state: node %s: %w", n.Name, err)
		}
		c.Nodes = append(c.Nodes, &Node{Server: &Server{Name: n.Name, shared: true, pid: n.PID},
			Shard: n.Shard, Replica: n.Replica, TCPPort: tcp, HTTPPort: http, old: old})
	}
	if len(c.Nodes) == 0 {
		return nil, errors.New("lab state: a cluster without nodes")
	}
	return c, nil
}
