package mover

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/ledger"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

// Pages of a scan, in rows: of one range, and of each where there are many.
const (
	scanPage   = 500
	mergedPage = 50
)

// Scan gives the published rows that have the named dimensions, which must be
// the leading ones of the key, level by level and period by period, each in the order
// of its keys and at most limit of them; 0 means all. begin is called before the rows
// of each. A salt does not disturb the order: its ranges are read side by side, a
// page of each in memory. An error of begin or each ends the scan and is returned.
func (l Lookup) Scan(ctx context.Context, limit int, begin, each func(Found) error) error {
	if err := l.check(); err != nil {
		return err
	}
	levels, err := l.levels()
	if err != nil {
		return err
	}
	hb, err := l.dial(ctx)
	if err != nil {
		return err
	}
	defer hb.Close()
	pointers, err := l.pointers(ctx, hb)
	if err != nil {
		return err
	}
	codec, types, err := l.codec(pointers)
	if err != nil {
		return err
	}
	s := scan{Lookup: l, hb: hb, codec: codec, types: types, limit: limit, begin: begin, each: each}
	found := false
	var refused error
	for _, p := range pointers {
		level := slices.IndexFunc(levels, func(i int) bool { return l.Job.Levels[i].Code == p.Level })
		if level < 0 || l.Period != "" && p.Period != l.Period {
			continue
		}
		ready, err := s.prepare(p, levels[level])
		if failure.ClassOf(err) == failure.Usage {
			refused = err // another level may have the dimensions in front
			continue
		}
		if err == nil {
			found = true
			err = s.unit(ctx, ready)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case found:
		return nil
	case refused != nil:
		return refused
	}
	return nothingPublished(l)
}

// levels are those that have all of the named dimensions.
func (l Lookup) levels() ([]int, error) {
	for name := range l.Values {
		if !slices.Contains(l.dimensionNames(), name) {
			return nil, failure.New(failure.Usage, fmt.Errorf("the job has no dimension %s", name), "the dimensions are "+strings.Join(l.dimensionNames(), ", "))
		}
	}
	var out []int
	var codes []string
	for i, level := range l.Job.Levels {
		codes = append(codes, level.Code)
		has := 0
		for _, d := range level.Dimensions {
			if _, ok := l.Values[l.Job.Dimensions[d].Name]; ok {
				has++
			}
		}
		if has == len(l.Values) && (l.Level == "" || l.Level == level.Code) {
			out = append(out, i)
		}
	}
	if l.Level != "" && !slices.Contains(codes, l.Level) {
		return nil, failure.New(failure.Usage, fmt.Errorf("the job has no level %s", l.Level), "the levels are "+strings.Join(codes, ", "))
	}
	if out == nil {
		return nil, failure.New(failure.Usage, errors.New("no level of the job has all of the given dimensions"), "give fewer of them")
	}
	return out, nil
}

func (l Lookup) dimensionNames() []string {
	names := make([]string, len(l.Job.Dimensions))
	for i, d := range l.Job.Dimensions {
		names[i] = d.Name
	}
	return names
}

// scan is a scan under way.
type scan struct {
	Lookup
	hb          *hbase.Client
	codec       *rowkey.Codec
	types       map[string]row.Type
	limit       int
	begin, each func(Found) error
}

// scanUnit is what to read of one pointer.
type scanUnit struct {
	*published
	given  []*row.Value
	ranges rowkey.Ranges
}

// prepare computes where the rows of a pointer lie.
func (s *scan) prepare(p ledger.Pointer, level int) (scanUnit, error) {
	u, err := s.published(p, level)
	if err != nil {
		return scanUnit{}, err
	}
	dims := s.Job.Levels[level].Dimensions
	given := make([]*row.Value, len(dims))
	for i, d := range dims {
		name := s.Job.Dimensions[d].Name
		if _, ok := s.Values[name]; !ok {
			continue
		}
		v, err := s.value(name, s.types[name])
		if err != nil {
			return scanUnit{}, err
		}
		given[i] = &v
	}
	ranges, err := s.codec.Ranges(u.unit, given)
	if err != nil {
		return scanUnit{}, failure.New(failure.Usage, err, failure.Remedy(err))
	}
	if ranges.Unmerged {
		s.Log.Warn("the salt has more values than can be read side by side: rows come in the order of whole keys, by the salt first", "most", rowkey.MaxRanges)
	}
	return scanUnit{u, given, ranges}, nil
}

// unit reads the rows of one pointer.
func (s *scan) unit(ctx context.Context, u scanUnit) error {
	head := Found{Level: u.pointer.Level, Period: u.pointer.Period, Date: u.pointer.Date, Run: u.pointer.Run}
	if err := s.begin(head); err != nil {
		return err
	}
	m, err := s.open(ctx, u)
	if err != nil {
		return err
	}
	for n := 0; s.limit == 0 || n < s.limit; {
		r, ok, err := m.next(ctx)
		if err != nil || !ok {
			return err
		}
		found := head
		mine, err := s.decode(u, r, &found)
		if err != nil {
			return err
		}
		if !mine {
			continue
		}
		n++
		if err := s.each(found); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a row; it tells false for one of another unit, or with other
// dimensions.
func (s *scan) decode(u scanUnit, r hbase.Row, into *Found) (bool, error) {
	k, err := s.codec.Decode(r.Key)
	if err != nil {
		return false, failure.New(failure.Sink, fmt.Errorf("a row of run %s: %w", u.pointer.Run, err), "")
	}
	if k.Level != u.unit.Level || k.Period != u.unit.Period.Period || !k.Date.Equal(u.unit.Date) {
		return false, nil
	}
	into.Dimensions = make(Fields, len(k.Dims))
	for i, d := range s.Job.Levels[k.Level].Dimensions {
		name := s.Job.Dimensions[d].Name
		shown := rowkey.ValueJSON(s.types[name], k.Dims[i], s.Job.Timezone)
		if u.given[i] != nil && shown != rowkey.ValueJSON(s.types[name], *u.given[i], s.Job.Timezone) {
			return false, nil
		}
		into.Dimensions[i] = NamedValue{name, shown}
	}
	into.Metrics, err = u.metrics(r)
	return true, err
}

// open begins to read all ranges of a unit.
func (s *scan) open(ctx context.Context, u scanUnit) (*merge, error) {
	page := scanPage
	if len(u.ranges.Prefixes) > 1 {
		page = mergedPage
	}
	if s.limit > 0 {
		page = min(page, s.limit)
	}
	cursors := make([]*hbase.Cursor, len(u.ranges.Prefixes))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, prefix := range u.ranges.Prefixes {
		cursors[i] = s.hb.Cursor(u.pointer.Table, prefix, u.pointer.Since, u.pointer.Until, page)
		group.Go(func() error { return cursors[i].Fill(limited) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	m := &merge{skip: u.ranges.Skip}
	for _, c := range cursors {
		if err := m.add(ctx, c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// merge gives the rows of several cursors in the order of their keys without
// the first skip bytes.
type merge struct {
	skip  int
	heads []mergeHead
}

type mergeHead struct {
	row    hbase.Row
	cursor *hbase.Cursor
}

// add puts the next row of a cursor in, if there is one.
func (m *merge) add(ctx context.Context, c *hbase.Cursor) error {
	r, ok, err := c.Next(ctx)
	if ok {
		heap.Push(m, mergeHead{r, c})
	}
	return err
}

func (m *merge) next(ctx context.Context) (hbase.Row, bool, error) {
	if len(m.heads) == 0 {
		return hbase.Row{}, false, nil
	}
	first := heap.Pop(m).(mergeHead)
	return first.row, true, m.add(ctx, first.cursor)
}

// Len, Less, Swap, Push and Pop are those of [heap.Interface].
func (m *merge) Len() int { return len(m.heads) }

func (m *merge) Less(i, j int) bool {
	a, b := m.heads[i].row.Key, m.heads[j].row.Key
	if c := bytes.Compare(a[m.skip:], b[m.skip:]); c != 0 {
		return c < 0
	}
	return bytes.Compare(a, b) < 0
}

func (m *merge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }

func (m *merge) Push(x any) { m.heads = append(m.heads, x.(mergeHead)) }

func (m *merge) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}
