package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say what a lab consists of.
type Options struct {
	ClickHouse    *ClickHouseOptions // 26.9; nil: none
	OldClickHouse *ClickHouseOptions // 18.16; nil: none
	HBase         *HBaseOptions      // nil: none
	Log           *slog.Logger       // progress; nil means standard error
}

// Running is a started set of servers that belongs to the caller.
type Running struct {
	ClickHouse    *Cluster
	OldClickHouse *Cluster
	HBase         *HBase
}

// Start prepares and starts all servers of opts, in parallel, and returns when
// they serve. When one fails, none is left.
func Start(ctx context.Context, opts Options) (*Running, error) {
	log := orStderr(opts.Log)
	needs := Needs{ClickHouse: opts.ClickHouse != nil, OldClickHouse: opts.OldClickHouse != nil, HBase: opts.HBase != nil}
	if err := Prepare(ctx, needs, log); err != nil {
		return nil, err
	}
	r := &Running{}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	if opts.ClickHouse != nil {
		wg.Go(func() { r.ClickHouse, errs[0] = startLogged(ctx, log, "ClickHouse 26.9", *opts.ClickHouse) })
	}
	if opts.OldClickHouse != nil {
		old := *opts.OldClickHouse
		old.Old = true
		wg.Go(func() { r.OldClickHouse, errs[1] = startLogged(ctx, log, "ClickHouse 18.16", old) })
	}
	if opts.HBase != nil {
		wg.Go(func() {
			begin := time.Now()
			r.HBase, errs[2] = StartHBase(ctx, *opts.HBase)
			logUp(log, "HBase 2.6.4", begin, errs[2])
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func startLogged(ctx context.Context, log *slog.Logger, what string, opts ClickHouseOptions) (*Cluster, error) {
	begin := time.Now()
	c, err := StartClickHouse(ctx, opts)
	logUp(log, what, begin, err)
	return c, err
}

func logUp(log *slog.Logger, what string, begin time.Time, err error) {
	if err == nil {
		log.Info(what+" is up", "took", time.Since(begin).Round(10*time.Millisecond))
	}
}

// Stop ends all servers and removes their files.
func (r *Running) Stop() error {
	var errs []error
	for _, c := range []*Cluster{r.ClickHouse, r.OldClickHouse} {
		if c != nil {
			errs = append(errs, c.Stop())
		}
	}
	if r.HBase != nil {
		errs = append(errs, r.HBase.Stop())
	}
	return errors.Join(errs...)
}

// State describes the servers for other processes; this process is the owner.
func (r *Running) State() *State {
	self := os.Getpid()
	s := &State{PID: self, StartTime: processStart(self), Started: time.Now().UTC().Truncate(time.Second)}
	if r.ClickHouse != nil {
		s.ClickHouse = r.ClickHouse.state()
	}
	if r.OldClickHouse != nil {
		s.OldClickHouse = r.OldClickHouse.state()
	}
	if r.HBase != nil {
		s.HBase = r.HBase.state()
	}
	return s
}

// Publish writes the state where it vanishes together with the servers, and
// returns the path, for the CK2HBASE_LAB of a child process.
func (r *Running) Publish() (path string, err error) {
	for _, c := range []*Cluster{r.ClickHouse, r.OldClickHouse} {
		if c != nil {
			path = filepath.Join(c.sess.dir, "state.json")
		}
	}
	if r.HBase != nil {
		path = filepath.Join(r.HBase.sess.dir, "state.json")
	}
	if path == "" {
		return "", errors.New("publish lab state: there are no servers")
	}
	return path, r.State().Write(path)
}

func portOf(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0, fmt.Errorf("port of %s: %w", addr, err)
	}
	return n, nil
}
