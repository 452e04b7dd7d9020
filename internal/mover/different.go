package mover

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ck2hbase/ck2hbase/internal/checksum"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/sink"
)

const (
	// fewBuckets is how many buckets of keys that differ are looked into in any case,
	// and rowsLookedAt about how many rows may be: all of them are in memory then.
	fewBuckets   = 16
	rowsLookedAt = 80_000
	// mostShown is how many keys are shown.
	mostShown = 20
	// sameFloat is the relative difference of two sums of the same floats, in one
	// order and in another.
	sameFloat = 1e-9
)

// cellScanner is a destination whose cells can be read back.
type cellScanner interface {
	// scanCells calls fn for each distinct row of a round, from several goroutines
	// at once, with all its cells. They are valid during the call.
	scanCells(ctx context.Context, p *part, fn func(key []byte, cells []hbase.CellView) error) error
	// regions are those of the table, in the order of keys.
	regions(ctx context.Context) ([]hbase.Region, error)
}

var (
	_ cellScanner = (*hbaseTable)(nil)
	_ cellScanner = (*clusters)(nil)
)

// findDifferent describes rows whose cells are not those that were written, or gives
// "" if there are none. The buckets whose sums differ are known; it asks all slices
// again, and keeps the rows of these: so memory is bounded whatever the number of
// rows, and of differences.
func (r *run) findDifferent(ctx context.Context, p *part, dest cellScanner) (string, error) {
	buckets, more := map[int]bool{}, false
	keys := uint64(1)
	for _, i := range p.units {
		keys += max(r.units[i].count.Keys, r.units[i].count.Groups)
	}
	most := int(max(fewBuckets, checksum.Buckets*rowsLookedAt/keys))
	for _, i := range p.units {
		c := r.units[i].count
		if c.Written == nil || c.There == nil {
			continue
		}
		for b := range c.Written.Sums {
			switch {
			case c.Written.Sums[b] == c.There.Sums[b]:
			case len(buckets) < most:
				buckets[b] = true
			default:
				more = more || !buckets[b]
			}
		}
	}
	if len(buckets) == 0 {
		return "", nil
	}
	c := &comparison{run: r, buckets: buckets, more: more, source: map[string]cellsOf{}, there: map[string]cellsOf{}}
	if _, err := r.replay(ctx, p, c); err != nil {
		return "", err
	}
	if err := dest.scanCells(ctx, p, c.found); err != nil {
		return "", err
	}
	regions, err := dest.regions(ctx)
	if err != nil {
		return "", err
	}
	return c.describe(regions), nil
}

// A comparison has the rows of some buckets on both sides. It is the sink of a
// replay, which gives it those of the source.
type comparison struct {
	run     *run
	buckets map[int]bool
	more    bool // there are more that differ

	mu            sync.Mutex
	source, there map[string]cellsOf // by key
}

var _ sink.Sink = (*comparison)(nil)

// cellsOf are the cells of a row, by family:qualifier, and the slice it is from.
type cellsOf struct {
	slice string
	cells map[string]string
}

// found takes a row of HBase.
func (c *comparison) found(key []byte, cells []hbase.CellView) error {
	if !c.buckets[checksum.Bucket(key)] {
		return nil
	}
	one := cellsOf{cells: map[string]string{}}
	for _, cell := range cells {
		one.cells[column(string(cell.Family), string(cell.Qualifier))] = string(cell.Value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there[string(key)] = one
	return nil
}

func column(family, qualifier string) string { return family + ":" + qualifier }

// describe shows the first rows that differ, by key.
func (c *comparison) describe(regions []hbase.Region) string {
	all := maps.Clone(c.source)
	maps.Copy(all, c.there)
	var lines []string
	differ := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text := c.compare(key)
		if text == "" {
			continue
		}
		if differ++; differ > mostShown {
			continue
		}
		where := "region " + regionOf(regions, key)
		if source, ok := c.source[key]; ok {
			where = "slice " + source.slice + ", " + where
		}
		lines = append(lines, fmt.Sprintf("key %q (%s): %s", key, where, text))
	}
	if differ > mostShown {
		lines = append(lines, fmt.Sprintf("and %d more", differ-mostShown))
	}
	if c.more && differ > 0 {
		lines = append(lines, "there may be more: not all rows were looked at")
	}
	return strings.Join(lines, "\n")
}

// compare says how the row of a key differs from the source's, "" if it does not.
func (c *comparison) compare(key string) string {
	source, inSource := c.source[key]
	there, isThere := c.there[key]
	switch {
	case !isThere:
		return "missing in HBase"
	case !inSource:
		return "in HBase, but not in ClickHouse"
	}
	names := maps.Clone(source.cells)
	maps.Copy(names, there.cells)
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		want, wanted := source.cells[name]
		got, found := there.cells[name]
		switch {
		case !found:
			texts = append(texts, fmt.Sprintf("%s is missing, ClickHouse has %s", name, c.show(name, want)))
		case !wanted:
			texts = append(texts, fmt.Sprintf("%s is %s, ClickHouse has none", name, c.show(name, got)))
		case want != got && c.show(name, got) == c.show(name, want):
			texts = append(texts, fmt.Sprintf("%s is %q, ClickHouse has %q", name, got, want))
		case want != got && !c.alike(name, want, got):
			texts = append(texts, fmt.Sprintf("%s is %s, ClickHouse has %s", name, c.show(name, got), c.show(name, want)))
		}
	}
	return strings.Join(texts, "; ")
}

// metric is the metric whose cell a column is, -1 if it is none's.
func (c *comparison) metric(name string) int {
	h := c.run.Job.HBase
	if h.Pack != "" {
		return -1
	}
	return slices.IndexFunc(h.Columns, func(q string) bool { return column(h.Family, q) == name })
}

// show gives a cell as JSON, or quoted where it is no metric's or cannot be read.
func (c *comparison) show(name, cell string) string {
	if i := c.metric(name); i >= 0 {
		if v, err := c.run.src.cells.DecodeCell(i, []byte(cell)); err == nil {
			if text, err := json.Marshal(v); err == nil {
				return string(text)
			}
		}
	}
	return strconv.Quote(cell)
}

// alike tells whether two cells are floats that differ by no more than the order in
// which their terms were added: the slices were asked again for these.
func (c *comparison) alike(name, want, got string) bool {
	i := c.metric(name)
	if i < 0 || c.run.src.metrics[i].Type.Kind != row.Float {
		return false
	}
	var x [2]float64
	for k, cell := range []string{want, got} {
		v, err := c.run.src.cells.DecodeCell(i, []byte(cell))
		number, ok := v.(json.Number)
		if err != nil || !ok {
			return false
		}
		if x[k], err = number.Float64(); err != nil {
			return false
		}
	}
	return math.Abs(x[0]-x[1]) <= sameFloat*max(math.Abs(x[0]), math.Abs(x[1]))
}

// regionOf names the region of a key by the hash at the end of its name, which
// HBase's own pages show, and its server.
func regionOf(regions []hbase.Region, key string) string {
	at, found := slices.BinarySearchFunc(regions, []byte(key), func(r hbase.Region, key []byte) int { return bytes.Compare(r.Start, key) })
	if !found {
		at--
	}
	if at < 0 || at >= len(regions) {
		return "unknown"
	}
	name := strings.TrimSuffix(regions[at].Name, ".")
	return name[strings.LastIndexByte(name, '.')+1:] + " on " + regions[at].Server
}

// Writer opens a writer, whose rows count when it commits.
func (c *comparison) Writer(_ context.Context, s sink.Slice) (sink.Writer, error) {
	return &comparedRows{comparison: c, slice: s, rows: map[string]cellsOf{}}, nil
}

// Close does nothing.
func (c *comparison) Close() error { return nil }

// comparedRows are those of one attempt of a slice.
type comparedRows struct {
	*comparison
	slice sink.Slice
	key   []byte
	rows  map[string]cellsOf
	n     int64
}

func (w *comparedRows) Write(_ context.Context, rows *row.Batch) error {
	for i := range rows.Len() {
		if err := w.add(rows.Row(i)); err != nil {
			return err
		}
	}
	w.n += int64(rows.Len())
	return nil
}

// add encodes a row as the sink does, if it is in one of the buckets.
func (w *comparedRows) add(values []row.Value) error {
	src, h := w.run.src, w.run.Job.HBase
	var err error
	if w.key, err = src.codec.AppendKey(w.key[:0], w.slice.Unit, values); err != nil || !w.buckets[checksum.Bucket(w.key)] {
		return err
	}
	one := cellsOf{slice: w.slice.Name, cells: map[string]string{}}
	for i := range src.cells.Len() {
		cell, present, err := src.cells.Append(nil, i, values[len(values)-src.cells.Metrics():])
		if err != nil {
			return err
		}
		if present {
			one.cells[column(h.Family, h.Columns[i])] = string(cell)
		}
	}
	w.rows[string(w.key)] = one
	return nil
}

// Commit adds what was seen to that of the other slices.
func (w *comparedRows) Commit(context.Context) (sink.Ack, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.source, w.rows)
	return sink.Ack{Rows: w.n}, nil
}

// Abort forgets the rows.
func (w *comparedRows) Abort() {}
