package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

func floatOf(v *row.Value) float64 { return math.Float64frombits(v.Num) }

// Count reads a file or a part and gives the number of its rows, without a line
// of names. A file that ends within a row is an error.
func Count(ctx context.Context, format job.FileFormat, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, diskError(err)
	}
	defer f.Close()
	if format == job.Parquet {
		p, err := openParquet(f)
		if err != nil {
			return 0, err
		}
		return p.NumRows(), nil
	}
	c := lineCounter{csv: format == job.CSV}
	if _, err := io.Copy(&c, reader{ctx, f}); err != nil {
		return 0, diskError(err)
	}
	if c.open {
		return 0, failure.Errorf(failure.Mismatch, "%s ends within a row", path)
	}
	return c.lines, nil
}

func openParquet(f *os.File) (*parquet.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, diskError(err)
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, failure.Errorf(failure.Mismatch, "%s is no whole Parquet file: %w", f.Name(), err)
	}
	return p, nil
}

// A lineCounter counts the lines that are written to it; in CSV a line may hold
// line breaks in quotes.
type lineCounter struct {
	csv    bool
	quoted bool
	open   bool // within a line
	lines  int64
}

func (c *lineCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case c.csv && b == '"':
			c.quoted = !c.quoted // a doubled one changes nothing
			c.open = true
		case b == '\n' && !c.quoted:
			c.lines++
			c.open = false
		default:
			c.open = true
		}
	}
	return len(p), nil
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := interrupted(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Merge joins parts, as [Sink.Parts] gives them, into a new file at path that is
// on disk when Merge returns, and gives the number of rows that the file was
// then found to have.
func Merge(ctx context.Context, c Config, path string, parts []string) (int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666) // as the user's umask says
	if err != nil {
		return 0, diskError(err)
	}
	if c.Format == job.Parquet {
		err = mergeParquet(ctx, c, f, parts)
	} else {
		err = mergeLines(ctx, c, f, parts)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, diskError(err)
	}
	rows, err := Count(ctx, c.Format, path)
	if c.Format == job.CSV {
		rows-- // the names
	}
	return rows, err
}

func mergeLines(ctx context.Context, c Config, f *os.File, parts []string) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if c.Format == job.CSV {
		var line []byte
		for i, name := range c.names() {
			if i > 0 {
				line = append(line, ',')
			}
			line = appendQuoted(line, name)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	for _, path := range parts {
		part, err := os.Open(path)
		if err != nil {
			return err
		}
		_, copyErr := io.Copy(w, reader{ctx, part})
		if err := errors.Join(copyErr, part.Close()); err != nil {
			return err
		}
	}
	return w.Flush()
}

func mergeParquet(ctx context.Context, c Config, f *os.File, parts []string) error {
	w := newParquet(c, f, fileRows).w
	for _, path := range parts {
		if err := copyParquet(ctx, w, path); err != nil {
			return err
		}
	}
	return w.Close()
}

func copyParquet(ctx context.Context, w parquet.RowWriter, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := openParquet(f)
	if err != nil {
		return err
	}
	for _, group := range p.RowGroups() {
		if err := interrupted(ctx); err != nil {
			return err
		}
		rows := group.Rows()
		_, copyErr := parquet.CopyRows(w, rows)
		if err := errors.Join(copyErr, rows.Close()); err != nil {
			return err
		}
	}
	return nil
}
