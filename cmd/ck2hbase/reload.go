package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/mover"
)

// onHangup makes a run read its rate anew when it gets a SIGHUP, until stop is
// called. On a terminal the signal says that the terminal has gone, and ends the
// run like any other.
func (f *common) onHangup(ctx context.Context, path string, m *mover.Mover, con *console) (stop func()) {
	if con.screen != nil || m.Job.File != nil {
		return func() {}
	}
	m.Rates = new(mover.Rates)
	signal.Reset(syscall.SIGHUP) // takes it from those that end the run
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				f.reload(path, m.Rates.Set, con.log)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		signal.Stop(signals)
	}
}

// reload reads the job file again and takes the rate from it, and nothing else.
// A file that is wrong changes nothing.
func (f *common) reload(path string, set func(job.Rate), log *slog.Logger) {
	j, err := f.load(path)
	if err != nil {
		log.Error("the job file was read again and is wrong: the rate stays", "error", err)
		return
	}
	log.Info("the job file was read again: the rate holds from now on, other changes do not", "rows", j.HBase.Rate.Rows, "bytes", j.HBase.Rate.Bytes)
	set(j.HBase.Rate)
}
