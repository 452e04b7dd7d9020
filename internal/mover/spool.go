package mover

import (
	"fmt"
	"os"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/spool"
)

// defaultSpool bounds the spool of a job that names no bound.
const defaultSpool = 10e9

// openSpool opens the spool that the job asks for; nil is none. What the job
// file names must be there; what is a default is done without where it is not.
func (m *Mover) openSpool() (*spool.Spool, error) {
	want := m.Job.Spool
	if want.MaxBytes == 0 {
		return nil, nil
	}
	s, err := m.trySpool(want)
	switch {
	case err == nil:
		return s, nil
	case want.Dir == "" && want.MaxBytes == job.SpoolAuto:
		m.Log.Info("rows will not wait on disk, should the sink be slow; spool.dir names a directory for them", "reason", err)
		return nil, nil
	}
	key := "spool.dir"
	if want.Dir == "" {
		key = "spool.max_bytes"
	}
	return nil, m.Job.ErrorAt(key, failure.New(failure.Preflight, fmt.Errorf("the spool: %w", err),
		"name a directory on a disk with room that this user can write to, or a smaller max_bytes; max_bytes: 0 does without"))
}

func (m *Mover) trySpool(want job.Spool) (*spool.Spool, error) {
	dir := want.Dir
	if dir == "" {
		dir = temporary()
		if spool.InMemory(dir) {
			return nil, fmt.Errorf("%s is in memory", dir)
		}
	}
	bound, err := spoolBound(dir, want.MaxBytes)
	if err != nil {
		return nil, err
	}
	return spool.Open(dir, bound)
}

// temporary is the directory for temporary files that may be large: /var/tmp
// is on a disk where /tmp is often in memory.
func temporary() string {
	const large = "/var/tmp"
	if os.Getenv("TMPDIR") == "" {
		if info, err := os.Stat(large); err == nil && info.IsDir() {
			return large
		}
	}
	return os.TempDir()
}

// spoolBound is how large the spool may become in a directory: what the job
// names, if there is as much, or at most half of what is free.
func spoolBound(dir string, bound int64) (int64, error) {
	free, known, err := spool.Free(dir)
	if err != nil {
		return 0, err
	}
	switch {
	case bound == job.SpoolAuto && known:
		bound = min(defaultSpool, free/2)
	case bound == job.SpoolAuto:
		bound = defaultSpool
	case known && free < bound:
		return 0, fmt.Errorf("%s has %d bytes free, and max_bytes is %d", dir, free, bound)
	}
	return bound, nil
}
