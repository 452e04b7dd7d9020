//go:build linux || darwin

package spool

import (
	"fmt"
	"syscall"
)

// Free is the number of bytes that this user may still write in a directory.
// ok is false where the system does not tell.
func Free(dir string) (bytes int64, ok bool, err error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false, fmt.Errorf("%s: %w", dir, err)
	}
	return int64(min(fs.Bavail*uint64(fs.Bsize), 1<<62)), true, nil
}
