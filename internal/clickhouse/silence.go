package clickhouse

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// silence is how long a server may send nothing while it is read from before it
// is asked whether it lives. Over the native protocol a query sends its progress
// every interactive_delay, a tenth of a second, whether it advances or not; so a server
// that is silent for longer is frozen, or cannot be reached, though its
// connections stand, or its query waits for a lock.
const silence = 20 * time.Second

// errSilent is that of a read from a server that has gone silent.
var errSilent = errors.New("the server said nothing")

// A heard is a connection of which no read waits for longer than limit, unless
// the server lives.
type heard struct {
	net.Conn
	limit time.Duration
	alive func() bool // asks the server in another way

	mu       sync.Mutex
	deadline time.Time // the driver's, which may be earlier
}

// Read implements net.Conn.
func (c *heard) Read(b []byte) (int, error) {
	for {
		ours, err := c.arm()
		if err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(b)
		if !ours || n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || c.passed() {
			return n, err
		}
		if !c.alive() {
			return 0, fmt.Errorf("%w for %v: %w", errSilent, c.limit, err)
		}
	}
}

// arm sets the deadline of one read, and says whether it is the limit's.
func (c *heard) arm() (ours bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now().Add(c.limit)
	if !c.deadline.IsZero() && c.deadline.Before(t) {
		return false, c.Conn.SetReadDeadline(c.deadline)
	}
	return true, c.Conn.SetReadDeadline(t)
}

// passed says whether the driver's own deadline has passed.
func (c *heard) passed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.deadline.IsZero() && !time.Now().Before(c.deadline)
}

// SetReadDeadline implements net.Conn.
func (c *heard) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *heard) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.Conn.SetWriteDeadline(t)
}

// SyscallConn lets the driver see whether an idle connection was closed.
func (c *heard) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
