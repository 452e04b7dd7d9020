//go:build !unix

package file

import (
	"errors"
	"os"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds the lock")

// Lock only opens the file where the system has no locks that end with a process.
func Lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666) // as the user's umask says
}
