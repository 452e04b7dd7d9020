package mover

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

// stoppedStore is a ledger's store whose first pointer takes a minute, in which
// somebody else takes the lease: what a process sees that is stopped for so long.
type stoppedStore struct {
	mu       sync.Mutex
	rows     map[string][]byte
	stopped  bool
	pointers []string
}

func (s *stoppedStore) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.rows[key]), nil
}

func (s *stoppedStore) CompareAndPut(_ context.Context, key string, expected, value []byte) (bool, error) {
	if strings.HasPrefix(key, "pub/") {
		s.mu.Lock()
		s.stopped = true
		s.pointers = append(s.pointers, key)
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.rows["lease/j/2026-11-29"] = []byte(`{"run":"r2"}`)
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && strings.HasPrefix(key, "lease/") && string(s.rows[key]) != `{"run":"r2"}` {
		return false, errors.New("a beat that did not happen")
	}
	if !bytes.Equal(s.rows[key], expected) {
		return false, nil
	}
	s.rows[key] = bytes.Clone(value)
	return true, nil
}

func (s *stoppedStore) Scan(context.Context, string, func(string, []byte) error) error { return nil }

// A process that is stopped between two pointers does not move the second one
// when it wakes up: somebody else may have removed the rows meanwhile.
func TestStoppedWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		d := newHBaseTable(&Mover{Job: &job.Job{Name: "j"}, Date: date}, "r1", time.Now(), 0)
		store := &stoppedStore{rows: map[string][]byte{}}
		d.ledger = ledger.New(store, slog.New(slog.DiscardHandler))
		var err error
		if d.lease, d.leased, err = d.ledger.Acquire(t.Context(), "j", "2026-11-29", ledger.Owner{Run: "r1"}); err != nil {
			t.Fatal(err)
		}
		plan := &scatter.Plan{Units: []scatter.UnitPlan{{Level: "1", Period: "DAY"}, {Level: "2", Period: "DAY"}}}
		// As with several clusters, the run's context does not end with one lease.
		err = d.publish(t.Context(), plan, func(int) uint64 { return 1 })
		if !errors.Is(err, ledger.ErrLost) || !strings.Contains(err.Error(), "level 2") {
			t.Errorf("publishing: %v", err)
		}
		if len(store.pointers) != 1 {
			t.Errorf("pointers moved: %q", store.pointers)
		}
		_ = d.lease.Release(t.Context()) // it is lost
	})
}
