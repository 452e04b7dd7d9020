// Command demo shows the mover at work on real servers: it starts a ClickHouse
// cluster of three nodes and an HBase, loads real and generated data, runs both
// example jobs, reads a row of each back, and ends the servers.
//
//	go run ./deploy/demo [-rows 5000000]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/lab"
)

func main() {
	rows := flag.Int64("rows", 5_000_000, "rows of the traffic data")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, *rows)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// A demo holds what the steps need.
type demo struct {
	servers *lab.Running
	program string
	env     []string
}

func run(ctx context.Context, rows int64) (err error) {
	begin := time.Now()
	step("Starting three ClickHouse nodes and an HBase (the first time, they are downloaded)")
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	servers, err := lab.Start(ctx, lab.Options{ClickHouse: &lab.ClickHouseOptions{}, HBase: &lab.HBaseOptions{}, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	dir, err := os.MkdirTemp("", "ck2hbase-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{servers: servers, program: filepath.Join(dir, "ck2hbase")}
	d.env = append(os.Environ(),
		"CK2HBASE_CLICKHOUSE="+strings.Join(servers.ClickHouse.TCPAddrs(), ","),
		"CK2HBASE_CLUSTER="+lab.ClusterName,
		"CK2HBASE_CLICKHOUSE_USER="+lab.MoverUser,
		"CK2HBASE_CLICKHOUSE_PASSWORD="+lab.MoverPassword,
		"CK2HBASE_ZOOKEEPER="+servers.HBase.Quorum(),
	)
	if err := d.command(ctx, "go", "build", "-o", d.program, "./cmd/ck2hbase"); err != nil {
		return err
	}
	if err := d.load(ctx, rows); err != nil {
		return err
	}
	if err := d.jobs(ctx); err != nil {
		return err
	}
	step("Both jobs are published. The demo took " + time.Since(begin).Round(time.Second).String())
	fmt.Println("Next: \"go run ./deploy/lab up\" starts the same servers and leaves them running; README.md shows a job file.")
	return nil
}

func (d *demo) load(ctx context.Context, rows int64) error {
	step("Loading 336,776 real flights (nycflights13)")
	if err := lab.LoadFlights(ctx, d.servers.ClickHouse, "demo"); err != nil {
		return err
	}
	step(fmt.Sprintf("Generating %d rows of shop traffic inside ClickHouse", rows))
	return lab.LoadTraffic(ctx, d.servers.ClickHouse, "demo", lab.TrafficOptions{Rows: rows})
}

func (d *demo) jobs(ctx context.Context) error {
	const flights, traffic = "examples/flights.yaml", "examples/traffic.yaml"
	step("What the mover would do for the traffic of 30 days")
	if err := d.mover(ctx, "plan", traffic, "--date", "2026-11-29"); err != nil {
		return err
	}
	step("Running the flights job")
	if err := d.mover(ctx, "run", flights, "--date", "2013-12-31"); err != nil {
		return err
	}
	step("Running the traffic job")
	if err := d.mover(ctx, "run", traffic, "--date", "2026-11-29"); err != nil {
		return err
	}
	step("Reading a row of each back from HBase")
	if err := d.mover(ctx, "get", flights, "tailnum=N14228", "carrier=UA"); err != nil {
		return err
	}
	shop, source, err := d.busiest(ctx)
	if err != nil {
		return err
	}
	if err := d.mover(ctx, "get", traffic, "shop_id="+shop, "first_source="+source); err != nil {
		return err
	}
	step("Reading the rows of that shop")
	return d.mover(ctx, "scan", traffic, "--prefix", "shop_id="+shop, "--limit", "5")
}

// busiest asks ClickHouse for the group with the most rows.
func (d *demo) busiest(ctx context.Context) (shop, source string, err error) {
	out, err := d.servers.ClickHouse.Nodes[0].Query(ctx,
		"SELECT shop_id, first_source FROM demo.traffic WHERE dt BETWEEN '2026-10-31' AND '2026-11-29' GROUP BY shop_id, first_source ORDER BY count() DESC, shop_id, first_source LIMIT 1")
	if err != nil {
		return "", "", err
	}
	shop, source, ok := strings.Cut(strings.TrimSpace(out), "\t")
	if !ok {
		return "", "", fmt.Errorf("ClickHouse answered %q where a shop and a source were asked for", out)
	}
	return shop, source, nil
}

// mover runs the program as a user would.
func (d *demo) mover(ctx context.Context, args ...string) error {
	fmt.Printf("$ ck2hbase %s\n", strings.Join(args, " "))
	return d.command(ctx, d.program, append(args, "--log-format", "text")...)
}

func (d *demo) command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.Stdout, c.Stderr = d.env, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}

func step(text string) { fmt.Printf("\n=== %s\n", text) }
