package mover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
	"github.com/ck2hbase/ck2hbase/internal/sink/file"
	"github.com/ck2hbase/ck2hbase/internal/verify"
)

// fileSet is the files of a job. Rows are written to a directory of the run's
// own, beside the files. When all of them were counted they are joined into
// files there, and these are moved to their places: whoever opens a file sees an
// old one or a new one, whole.
type fileSet struct {
	*Mover
	run    string
	src    *source
	lock   *os.File
	dir    string             // the run's own
	rounds []*file.Sink       // of all rounds
	held   map[int]*file.Sink // who has the rows of a unit
}

var _ destination = (*fileSet)(nil)

func newFileSet(m *Mover, run string) *fileSet {
	return &fileSet{Mover: m, run: run, held: map[int]*file.Sink{}}
}

func (d *fileSet) String() string {
	return fmt.Sprintf("%s (%s)", d.Job.File.Path, d.Job.File.Format)
}

func (d *fileSet) holds() string { return "rows in the files" }

// open looks whether the files can have their names.
func (d *fileSet) open(_ context.Context, src *source) error {
	d.src = src
	for _, u := range d.Job.Units(d.Date) {
		path := d.path(u)
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			return d.wrongPath(fmt.Errorf("%s is there and is no file", path))
		}
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err == nil && !info.IsDir() {
				return d.wrongPath(fmt.Errorf("%s is no directory", dir))
			}
			if err == nil || dir == filepath.Dir(dir) {
				break
			}
		}
	}
	_, err := file.New(d.config(""))
	return err
}

func (d *fileSet) wrongPath(err error) error {
	return d.Job.ErrorAt("sink.file.path", failure.New(failure.Preflight, err, "name a file in a directory that this user can write to"))
}

func (d *fileSet) config(dir string) file.Config { return fileConfig(d.Job, d.src, dir) }

// fileConfig is that of a sink with its parts in a directory.
func fileConfig(j *job.Job, src *source, dir string) file.Config {
	return file.Config{Dir: dir, Format: j.File.Format, Dimensions: src.dims, Levels: j.Levels, Metrics: src.metrics, Zone: j.Timezone}
}

// path is the file of a unit; several units may have the same.
func (d *fileSet) path(u job.Unit) string {
	return strings.NewReplacer("{date}", day(d.Date), "{lvl}", url.PathEscape(u.Code), "{tp}", string(u.Period.Period)).Replace(d.Job.File.Path)
}

// base is the directory that all files of the date are in, at some depth.
func (d *fileSet) base() string {
	path := strings.ReplaceAll(d.Job.File.Path, "{date}", day(d.Date))
	if before, _, cut := strings.Cut(path, "{"); cut {
		path = before + "x" // what is in front of it in its own segment belongs to the file's name
	}
	return filepath.Dir(path)
}

// hidden is how the names of all begin that is not the result: dates whose files
// are others have other names, so that their runs do not meet.
func (d *fileSet) hidden() string {
	name := ".ck2hbase-" + d.Job.Name
	if strings.Contains(d.Job.File.Path, "{date}") {
		name += "-" + day(d.Date)
	}
	return filepath.Join(d.base(), name)
}

// enter locks the files of the job and date and makes the run's directory.
func (d *fileSet) enter(ctx context.Context) (context.Context, error) {
	if err := os.MkdirAll(d.base(), 0o777); err != nil { // as the user's umask says
		return nil, d.wrongPath(err)
	}
	var err error
	d.lock, err = file.Lock(d.hidden() + ".lock")
	switch {
	case errors.Is(err, file.ErrLocked):
		return nil, failure.New(failure.Locked, fmt.Errorf("another run of job %s writes the same files in %s: %w", d.Job.Name, d.base(), err), "let it finish")
	case err != nil:
		return nil, d.wrongPath(err)
	}
	d.clearAway(ctx)
	d.dir = d.hidden() + "-" + d.run + ".tmp"
	if err := os.Mkdir(d.dir, 0o777); err != nil { // as the user's umask says
		return nil, errors.Join(d.wrongPath(err), d.lock.Close())
	}
	return ctx, nil
}

// clearAway removes the files and the queries of runs that were killed: they had
// the lock that this one has.
func (d *fileSet) clearAway(ctx context.Context) {
	entries, err := os.ReadDir(d.base())
	if err != nil {
		d.Log.Warn("could not look for what earlier runs have left", "error", err)
	}
	for _, e := range entries {
		dir := filepath.Join(d.base(), e.Name())
		id, own := strings.CutPrefix(strings.TrimSuffix(dir, ".tmp"), d.hidden()+"-")
		if !own || !strings.HasSuffix(dir, ".tmp") || !runIDs.MatchString(id) {
			continue // another's, whose name may begin as this job's does
		}
		killLeftovers(ctx, d.src.client, d.Log, id)
		if err := os.RemoveAll(dir); err != nil {
			d.Log.Warn("could not remove what an earlier run has left", "directory", dir, "error", err)
		}
	}
}

func (d *fileSet) keepPlan(context.Context, *scatter.Plan) error { return nil }

func (d *fileSet) begin(_ context.Context, p *part) (roundSink, error) {
	dir := filepath.Join(d.dir, strconv.Itoa(len(d.rounds)))
	if err := os.Mkdir(dir, 0o777); err != nil { // as the user's umask says
		return roundSink{}, failure.New(failure.Sink, err, "")
	}
	s, err := file.New(d.config(dir))
	if err != nil {
		return roundSink{}, err
	}
	d.rounds = append(d.rounds, s)
	for _, i := range p.units {
		d.held[i] = s
	}
	return roundSink{Sink: s, tally: func() tally {
		now := s.Written()
		return tally{rows: now.Rows, cells: now.Cells, bytes: now.Bytes}
	}}, nil
}

// count counts the rows in the parts: NDJSON and CSV are read whole, Parquet has
// the number at its end, and its rows are read when [fileSet.publish] joins the parts.
func (d *fileSet) count(ctx context.Context, p *part, counts []verify.Count) error {
	for k, i := range p.units {
		for _, path := range d.held[i].Parts(p.plan.Units[k].Unit) {
			n, err := file.Count(ctx, d.Job.File.Format, path)
			if err != nil {
				return err
			}
			counts[k].Keys += uint64(n)
		}
		counts[k].Checked = true
	}
	return nil
}

func (d *fileSet) forget(_ context.Context, units []int) error {
	for _, i := range units {
		delete(d.held, i)
	}
	return nil
}

func (d *fileSet) times(int) (since, until int64) { return 0, 0 }

// publish joins the parts into files, and moves these to their places when all
// are on disk and hold as many rows as were counted.
func (d *fileSet) publish(ctx context.Context, plan *scatter.Plan, rows func(unit int) uint64) error {
	type made struct{ tmp, path string }
	var all []made
	units := map[string][]int{}
	var paths []string
	for i := range plan.Units {
		path := d.path(plan.Units[i].Unit)
		if units[path] == nil {
			paths = append(paths, path)
		}
		units[path] = append(units[path], i)
	}
	for n, path := range paths {
		var parts []string
		want := uint64(0)
		for _, i := range units[path] {
			parts = append(parts, d.held[i].Parts(plan.Units[i].Unit)...)
			want += rows(i)
		}
		tmp := filepath.Join(d.dir, strconv.Itoa(n)+".whole")
		got, err := file.Merge(ctx, d.config(d.dir), tmp, parts)
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		if uint64(got) != want {
			return failure.Errorf(failure.Mismatch, "%s has %d rows where %d were counted", path, got, want)
		}
		all = append(all, made{tmp, path})
	}
	for _, m := range all {
		if err := moveFile(m.tmp, m.path); err != nil {
			return failure.New(failure.Sink, err, "check the rights in the directory of sink.file.path")
		}
	}
	return nil
}

// moveFile gives a file its name, over one that has it, for good.
func moveFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil { // as the user's umask says
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d *fileSet) notes() []string { return nil }

func (d *fileSet) leave(_ context.Context, _ int64, _ error) {
	if err := errors.Join(os.RemoveAll(d.dir), d.lock.Close()); err != nil {
		d.Log.Warn("could not remove the run's own files", "directory", d.dir, "error", err)
	}
}

func (d *fileSet) close() {}
