package spool

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Queue holds the batches of one producer for one consumer. The two may call
// Push and Pop at the same time; Close comes after both.
type Queue struct {
	spool *Spool
	chunk []byte        // of the producer
	r     *bufio.Reader // of the consumer

	mu      sync.Mutex
	files   []*segment // the first is read, the last is written
	batches int
	pushing bool // a batch is being written to the last file
}

// chunkBytes is how much is written and read at once.
const chunkBytes = 64 << 10

// A segment is one file, with what is in it.
type segment struct {
	file  file
	size  int64   // bytes written
	held  int64   // bytes of the spool's bound
	items []entry // batches that were not read yet
}

// An entry is one batch in a file.
type entry struct {
	at, bytes     int64
	width, values int
	sum           uint32
}

var table = crc32.MakeTable(crc32.Castagnoli)

// Queue makes an empty queue.
func (s *Spool) Queue() *Queue { return &Queue{spool: s} }

// Push takes a batch, which stays the caller's, and returns the bytes that it
// takes on disk. False means that there is no room, or that the disk failed
// (see [Spool.Err]): the batch was not taken. The error is for values that no
// file can hold.
func (q *Queue) Push(b *row.Batch) (bytes int64, ok bool, err error) {
	most := mostBytes(b)
	if !q.spool.reserve(most) {
		return 0, false, nil
	}
	s, err := q.beginPush()
	if err != nil {
		q.spool.fail(err)
		q.spool.giveBack(most)
		return 0, false, nil
	}
	e := entry{at: s.size, width: b.Width, values: len(b.Values)}
	err = q.write(s.file, b, &e)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushing = false
	if err != nil {
		// Whatever reached the file is not in it: the next batch goes over it.
		q.spool.giveBack(most)
		if errors.Is(err, errKind) {
			return 0, false, err
		}
		q.spool.fail(err)
		return 0, false, nil
	}
	q.spool.giveBack(most - e.bytes)
	s.size += e.bytes
	s.held += e.bytes
	s.items = append(s.items, e)
	q.batches++
	return e.bytes, true, nil
}

// beginPush gives the file to write to.
func (q *Queue) beginPush() (*segment, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.files); n > 0 && q.files[n-1].size < q.spool.fileSize {
		q.pushing = true
		return q.files[n-1], nil
	}
	f, err := q.spool.create()
	if err != nil {
		return nil, err
	}
	q.files = append(q.files, &segment{file: f})
	q.pushing = true
	return q.files[len(q.files)-1], nil
}

func (q *Queue) write(f io.WriterAt, b *row.Batch, e *entry) error {
	if q.chunk == nil {
		q.chunk = make([]byte, 0, 2*chunkBytes) // a chunk ends with a whole value
	}
	chunk := q.chunk[:0]
	flush := func() error {
		n, err := f.WriteAt(chunk, e.at+e.bytes)
		if err == nil && n < len(chunk) {
			err = io.ErrShortWrite
		}
		e.bytes += int64(n)
		e.sum = crc32.Update(e.sum, table, chunk)
		chunk = chunk[:0]
		return err
	}
	for i := range b.Values {
		var err error
		if chunk, err = appendValue(chunk, &b.Values[i]); err != nil {
			return err
		}
		if len(chunk) >= chunkBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// Len is the number of batches that wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.batches
}

// Pop fills b, which was reset, with the batch that waits longest. False means
// that none waits. An error is classified, and ends the queue's use but for Close.
func (q *Queue) Pop(b *row.Batch) (bool, error) {
	q.mu.Lock()
	if q.batches == 0 {
		q.mu.Unlock()
		return false, nil
	}
	s := q.files[0]
	e := s.items[0]
	q.mu.Unlock()
	if err := q.read(s.file, e, b); err != nil {
		return false, readError(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s.items = s.items[1:]
	q.batches--
	return true, q.dropRead()
}

func (q *Queue) read(f io.ReaderAt, e entry, b *row.Batch) error {
	section := &summed{r: io.NewSectionReader(f, e.at, e.bytes)}
	if q.r == nil {
		q.r = bufio.NewReaderSize(nil, chunkBytes)
	}
	q.r.Reset(section)
	b.Reset(e.width)
	for range e.values {
		v, err := readValue(q.r, e.bytes)
		if errors.Is(err, io.EOF) {
			err = errDamaged
		}
		if err != nil {
			return err
		}
		b.Values = append(b.Values, v)
	}
	if _, err := q.r.ReadByte(); !errors.Is(err, io.EOF) || section.sum != e.sum {
		return errDamaged
	}
	return nil
}

// summed sums up what is read through it.
type summed struct {
	r   io.Reader
	sum uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum = crc32.Update(s.sum, table, p[:n])
	return n, err
}

// dropRead closes the files of which all was read, but not one that is being
// written to, and gives their bytes back.
func (q *Queue) dropRead() error {
	for len(q.files) > 0 {
		s := q.files[0]
		last := len(q.files) == 1
		if len(s.items) > 0 || last && (q.pushing || q.batches > 0) {
			return nil
		}
		q.files = q.files[1:]
		q.spool.giveBack(s.held)
		if err := s.file.Close(); err != nil {
			return readError(err)
		}
	}
	return nil
}

// Close drops what is left. It may be called more than once.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, s := range q.files {
		q.spool.giveBack(s.held)
		errs = append(errs, s.file.Close())
	}
	q.files, q.batches = nil, 0
	return errors.Join(errs...)
}
