package lab

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ports are taken below the kernel's usual ephemeral range, so that no
// outgoing connection can occupy one between its choice and its use, or while
// its server is being restarted.
const (
	portLow  = 15000
	portHigh = 32000
)

// freePort reserves a TCP port on the loopback address for the life of the
// session, against every other lab of this user: port N is byte N of a file,
// locked through the session's own open file.
func (s *session) freePort() (int, error) {
	if s.ports == nil {
		name := filepath.Join(os.TempDir(), fmt.Sprintf("ck2hbase-ports-%d", os.Getuid()))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return 0, fmt.Errorf("reserve a port: %w", err)
		}
		s.ports = f
	}
	for range 200 {
		port := portLow + rand.IntN(portHigh-portLow)
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
		err := unix.FcntlFlock(s.ports.Fd(), unix.F_OFD_SETLK, &lock)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reserve a port: %w", err)
		}
		// The same session may draw a port twice: its own lock does not stop it.
		if !s.taken[port] && portFree(port) {
			s.taken[port] = true
			return port, nil
		}
	}
	return 0, errors.New("reserve a port: none free in 200 tries")
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
