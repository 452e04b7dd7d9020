package main

import (
	"context"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

// startFragile starts a cluster of this process alone.
func startFragile(t testing.TB) (*lab.Cluster, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	c, err := lab.StartClickHouse(ctx, lab.ClickHouseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c, true
}
