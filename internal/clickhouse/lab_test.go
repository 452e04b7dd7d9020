package clickhouse_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/clickhouse"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/lab"
)

var limits = job.Limits{
	MaxExecutionTime:              60 * time.Second,
	MaxMemoryUsage:                2 << 30,
	MaxBytesBeforeExternalGroupBy: 1 << 30,
}

// versions are the oldest server that is supported and the newest.
var versions = map[string]func(*lab.Lab, testing.TB) *lab.Cluster{
	"26.9":  (*lab.Lab).ClickHouse,
	"18.16": (*lab.Lab).OldClickHouse,
}

// onEach runs a test against both versions.
func onEach(t *testing.T, test func(t *testing.T, c *lab.Cluster)) {
	for name, cluster := range versions {
		t.Run(name, func(t *testing.T) { test(t, cluster(lab.Shared(t), t)) })
	}
}

func source(c *lab.Cluster) job.Source {
	return job.Source{
		Addresses: c.TCPAddrs()[:1], Cluster: lab.ClusterName,
		Username: lab.MoverUser, Password: lab.MoverPassword,
	}
}

func open(t *testing.T, src job.Source, l job.Limits) *clickhouse.Client {
	t.Helper()
	c, err := clickhouse.Open(t.Context(), src, l, 2, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
