// Package spool keeps batches of rows on disk, first in, first out, while what
// reads them is slower than what makes them. The bytes of all queues of a spool
// together are bounded.
//
// A file is removed from its directory as soon as it is open, where the system
// allows that: then its bytes are gone with the process, however it ends, and
// nobody can open it by name. Elsewhere it is removed when it is closed. Files
// have the mode 0600 and are not encrypted.
//
// A disk that fails loses no rows: a batch that could not be written whole is
// not taken, and the spool takes no more from then on. What was taken is read
// back with a checksum.
package spool

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

const (
	// The sizes of the files of a queue: a file's bytes are given back when all of it
	// was read, so a small bound is cut into small files.
	largestFile  = 64 << 20
	smallestFile = 1 << 20
	filesOfBound = 16
)

// A Spool bounds the bytes of its queues. It is safe for concurrent use.
type Spool struct {
	bound    int64
	fileSize int64
	create   func() (file, error)

	mu     sync.Mutex
	used   int64
	broken error
}

// file is what the spool needs of an [os.File].
type file interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
}

// Open makes a spool of at most bound bytes in a directory, and tries whether
// files can be made and written there.
func Open(dir string, bound int64) (*Spool, error) {
	s := newSpool(bound, func() (file, error) { return createFile(dir) })
	f, err := s.create()
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt([]byte{0}, 0)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return s, err
}

func newSpool(bound int64, create func() (file, error)) *Spool {
	return &Spool{bound: bound, fileSize: min(max(bound/filesOfBound, smallestFile), largestFile), create: create}
}

// createFile makes a file that only this process can reach.
func createFile(dir string) (file, error) {
	f, err := os.CreateTemp(dir, "ck2hbase-spool-*") // mode 0600, and never one that is there
	if err != nil {
		return nil, err
	}
	if os.Remove(f.Name()) == nil {
		return f, nil
	}
	return &named{f}, nil
}

// named is a file of a system that does not remove open ones.
type named struct{ *os.File }

func (n *named) Close() error {
	err := n.File.Close()
	if removeErr := os.Remove(n.Name()); err == nil {
		err = removeErr
	}
	return err
}

// Err is why the spool takes no more, nil while it does.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Used is the number of bytes on disk, or reserved to be written.
func (s *Spool) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// reserve takes room for n bytes if there is as much.
func (s *Spool) reserve(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil || s.used+n > s.bound {
		return false
	}
	s.used += n
	return true
}

func (s *Spool) giveBack(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// fail ends the taking of batches: a disk that is full stays so for a while,
// and every further attempt would cost the reader of a query its time.
func (s *Spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
}

// readError classifies what went wrong with reading back: the rows are still
// in the source, so a new attempt helps.
func readError(err error) error {
	return failure.New(failure.Transient, fmt.Errorf("reading back what was spooled to disk: %w", err),
		"check the disk under spool.dir; spool: {max_bytes: 0} does without")
}
