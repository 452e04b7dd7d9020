// Package file is the sink that writes rows to files, for looking at results
// without a table.
//
// Each committed slice is a part: a file of its own in a directory that nobody
// else looks at. [Count] reads a part back, and [Merge] joins parts into one
// file. Whoever calls them decides when that file gets the name that readers
// know, so what has the name is always whole.
//
// The columns are the business date, the level's code and the period's name
// (date, level, period), all dimensions of the job, NULL where the level does
// not group by one, and the metrics.
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

// Config is what a Sink is made from.
type Config struct {
	// Dir is a directory that exists and is this sink's alone; empty means that
	// nothing is written: what would be is counted.
	Dir    string
	Format job.FileFormat
	// Dimensions are those of the job, and Levels say which a unit groups by.
	Dimensions []row.Column
	Levels     []job.Level
	Metrics    []row.Column
	// Zone is that of DateTime values in text; nil is UTC.
	Zone *time.Location
}

// Sink keeps the committed slices of a run as parts.
type Sink struct {
	config Config

	mu     sync.Mutex
	opened int
	closed bool
	parts  map[sliceID]part
	order  []sliceID // as first committed
}

// sliceID tells the slices of a run apart.
type sliceID struct {
	level  int
	period job.Period
	name   string
}

type part struct {
	path string
	ack  sink.Ack
}

var _ sink.Sink = (*Sink)(nil)

// New makes a sink.
func New(c Config) (*Sink, error) {
	if err := checkNames(c); err != nil {
		return nil, err
	}
	return &Sink{config: c, parts: map[sliceID]part{}}, nil
}

var errClosed = errors.New("the file sink is closed")

// Writer opens a part.
func (s *Sink) Writer(_ context.Context, slice sink.Slice) (sink.Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	w := &writer{
		sink: s, slice: slice, dims: s.config.Levels[slice.Unit.Level].Dimensions,
		values: make([]*row.Value, len(s.config.Dimensions)+len(s.config.Metrics)),
		keys:   s.config.texts(),
	}
	if s.config.Dir != "" {
		s.opened++
		path := filepath.Join(s.config.Dir, strconv.Itoa(s.opened)+".part")
		var err error
		if w.out.file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err != nil { // as the user's umask says
			return nil, diskError(err)
		}
	}
	var err error
	if w.encoder, err = s.config.encoder(&w.out); err != nil {
		return nil, errors.Join(err, w.out.close())
	}
	return w, nil
}

// A counter counts the bytes that go into a file, or nowhere if it is nil.
type counter struct {
	file  *os.File
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	if c.file == nil {
		return len(p), nil
	}
	return c.file.Write(p)
}

func (c *counter) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// name is the file's path, empty where there is none.
func (c *counter) name() string {
	if c.file == nil {
		return ""
	}
	return c.file.Name()
}

// Close refuses new writers. The parts stay.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Parts are the files of a unit's committed slices.
func (s *Sink) Parts(u job.Unit) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, id := range s.order {
		if id.level == u.Level && id.period == u.Period.Period {
			paths = append(paths, s.parts[id].path)
		}
	}
	return paths
}

// Committed sums the committed slices of a unit.
func (s *Sink) Committed(u job.Unit) sink.Ack {
	return s.sum(func(id sliceID) bool { return id.level == u.Level && id.period == u.Period.Period })
}

// Written sums what was committed.
func (s *Sink) Written() sink.Ack { return s.sum(func(sliceID) bool { return true }) }

func (s *Sink) sum(of func(sliceID) bool) sink.Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all sink.Ack
	for id, p := range s.parts {
		if of(id) {
			all.Add(p.ack)
		}
	}
	return all
}

// commit puts a part in the place of one of the same slice.
func (s *Sink) commit(slice sink.Slice, p part) error {
	id := sliceID{slice.Unit.Level, slice.Unit.Period.Period, slice.Name}
	s.mu.Lock()
	old, before := s.parts[id]
	if !before {
		s.order = append(s.order, id)
	}
	s.parts[id] = p
	s.mu.Unlock()
	if before && old.path != "" {
		return os.Remove(old.path)
	}
	return nil
}

// texts write the dimensions of a row.
func (c Config) texts() []rowkey.Text {
	texts := make([]rowkey.Text, len(c.Dimensions))
	for i, d := range c.Dimensions {
		texts[i] = rowkey.NewText(d.Type, c.Zone)
	}
	return texts
}

// A writer writes one part.
type writer struct {
	sink    *Sink
	slice   sink.Slice
	out     counter
	encoder encoder
	dims    []int          // of the level
	values  []*row.Value   // a row: all dimensions, then the metrics; nil is NULL
	keys    []rowkey.Text  // by dimension
	seen    map[string]int // rows of a batch by their dimensions
	key     []byte
	ack     sink.Ack
	err     error
	ended   bool
}

func (w *writer) Write(ctx context.Context, rows *row.Batch) error {
	if w.ended {
		return errors.New("file sink: a write after the writer's end")
	}
	w.seen = make(map[string]int, rows.Len())
	for i := 0; i < rows.Len() && w.err == nil; i++ {
		if w.err = interrupted(ctx); w.err == nil {
			w.err = w.row(rows.Row(i), i)
		}
	}
	return w.err
}

func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return failure.New(failure.Transient, context.Cause(ctx), "")
	}
	return nil
}

func (w *writer) row(values []row.Value, number int) error {
	c := &w.sink.config
	clear(w.values)
	for i, d := range w.dims {
		w.values[d] = notNull(&values[i])
	}
	for i := range c.Metrics {
		w.values[len(c.Dimensions)+i] = notNull(&values[len(w.dims)+i])
	}
	for i, v := range w.values {
		if v != nil && v.Kind == row.String && !utf8.ValidString(v.Str) {
			return failure.New(failure.Source, fmt.Errorf("column %s: %q is not UTF-8", c.column(i).Name, v.Str), "wrap the expression in hex(…) or base64Encode(…)")
		}
	}
	if err := w.checkTwice(number); err != nil {
		return err
	}
	for _, v := range w.values[len(c.Dimensions):] {
		if v != nil {
			w.ack.Cells++
		}
	}
	w.ack.Rows++
	return w.encoder.row(w.slice.Unit, w.values)
}

func notNull(v *row.Value) *row.Value {
	if v.Null {
		return nil
	}
	return v
}

// column is that of the i-th value.
func (c *Config) column(i int) row.Column {
	if i < len(c.Dimensions) {
		return c.Dimensions[i]
	}
	return c.Metrics[i-len(c.Dimensions)]
}

// checkTwice refuses two rows of a batch with the same dimensions. Groups that
// came in two batches show when the rows are counted.
func (w *writer) checkTwice(number int) error {
	w.key = w.key[:0]
	for _, d := range w.dims {
		if v := w.values[d]; v == nil {
			w.key = append(w.key, 0)
		} else {
			at := len(w.key)
			w.key = w.keys[d].Append(append(w.key, 1), v)
			w.key = strconv.AppendInt(append(w.key, 0), int64(len(w.key)-at), 10)
		}
	}
	if first, twice := w.seen[string(w.key)]; twice {
		return failure.Errorf(failure.Source, "rows %d and %d of a batch have the same dimensions: %q", first+1, number+1, bytes.ReplaceAll(w.key, []byte{0}, []byte{' '}))
	}
	w.seen[string(w.key)] = number
	return nil
}

func (w *writer) Commit(ctx context.Context) (sink.Ack, error) {
	if w.ended {
		return sink.Ack{}, errors.New("file sink: the writer has ended")
	}
	if w.err == nil {
		w.err = interrupted(ctx)
	}
	if w.err != nil {
		w.Abort()
		return sink.Ack{}, w.err
	}
	w.ended = true
	if err := errors.Join(w.encoder.close(), w.out.close()); err != nil {
		return sink.Ack{}, diskError(err)
	}
	if w.ack.Rows > 0 {
		w.ack.Bytes = w.out.bytes
	}
	if err := w.sink.commit(w.slice, part{w.out.name(), w.ack}); err != nil {
		return sink.Ack{}, diskError(err)
	}
	return w.ack, nil
}

func (w *writer) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	_ = w.encoder.close() // what is in it is given up
	_ = w.out.close()     // too
	if path := w.out.name(); path != "" {
		_ = os.Remove(path) // its directory will be removed in any case
	}
}

// diskError is permanent: the disk is full, or somebody has to grant a right.
func diskError(err error) error {
	if _, ok := errors.AsType[*failure.Error](err); ok {
		return err
	}
	return failure.New(failure.Sink, err, "check the room and the rights in the directory of sink.file.path")
}
