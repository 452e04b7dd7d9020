package lab

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds the start of shared servers, downloads included.
const startTimeout = 15 * time.Minute

// shared is the only state of this package: the servers that the tests of this
// process share. They end with the process, which is what makes it safe: there
// is nothing to clean up that the kernel and the watcher do not do.
var shared Lab

// Lab gives tests the servers they share. Each is started, or attached to,
// when a test first asks for it.
type Lab struct {
	clickHouse, oldClickHouse lazy[*Cluster]
	hbase                     lazy[*HBase]
}

// Shared returns the servers of the lab that CK2HBASE_LAB points to; those it
// does not have, or all without that variable, are started on first use and end
// with the test process. Tests must use databases and tables of their own.
func Shared(t testing.TB) *Lab {
	t.Helper()
	return &shared
}

// ClickHouse is a cluster of 26.9 with three shards.
func (l *Lab) ClickHouse(t testing.TB) *Cluster {
	t.Helper()
	return l.clickHouse.get(t, func(ctx context.Context, s *State) (*Cluster, error) {
		if s != nil && s.ClickHouse != nil {
			return s.ClickHouse.cluster(false)
		}
		return sharedCluster(StartClickHouse(ctx, ClickHouseOptions{}))
	})
}

// OldClickHouse is a cluster of 18.16 with three shards.
func (l *Lab) OldClickHouse(t testing.TB) *Cluster {
	t.Helper()
	return l.oldClickHouse.get(t, func(ctx context.Context, s *State) (*Cluster, error) {
		if s != nil && s.OldClickHouse != nil {
			return s.OldClickHouse.cluster(true)
		}
		return sharedCluster(StartClickHouse(ctx, ClickHouseOptions{Old: true}))
	})
}

// HBase is an HBase in one JVM.
func (l *Lab) HBase(t testing.TB) *HBase {
	t.Helper()
	return l.hbase.get(t, func(ctx context.Context, s *State) (*HBase, error) {
		if s != nil && s.HBase != nil {
			return s.HBase.hbase(), nil
		}
		h, err := StartHBase(ctx, HBaseOptions{})
		if err == nil {
			h.Master.shared, h.shared = true, true
		}
		return h, err
	})
}

// sharedCluster takes from its users what would disturb the others.
func sharedCluster(c *Cluster, err error) (*Cluster, error) {
	if err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		n.shared = true
	}
	c.shared = true
	return c, nil
}

// lazy is a value made on first use; a failure is remembered, so that a broken
// machine fails each test at once and not after each one's patience.
type lazy[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (l *lazy[T]) get(t testing.TB, start func(context.Context, *State) (T, error)) T {
	t.Helper()
	l.once.Do(func() {
		// Not the test's context: the servers outlive it.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		var state *State
		if path := os.Getenv(EnvLab); path != "" {
			if state, l.err = ReadState(path); l.err != nil {
				return
			}
		}
		l.value, l.err = start(ctx, state)
	})
	if l.err != nil {
		t.Fatalf("lab: %v", l.err)
	}
	return l.value
}
