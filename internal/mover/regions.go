package mover

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/scatter"
)

const (
	// maxRegions bounds the pre-splits of a new table.
	maxRegions = 256
	// keysPerRegion is how many keys a region of a new table without a salt gets,
	// as far as they can be estimated, and minRegions how many regions there are at
	// least, unless there are too few keys for it to matter.
	keysPerRegion = 250_000
	minRegions    = 8
	fewKeys       = 20_000
	// sampledKeys is about the number of keys of each level and period from which
	// the regions' shares are estimated: a share of a third is then known to ±2 %.
	sampledKeys = 4000
	// hotShare is the part of a run's rows that one region should not exceed.
	hotShare = 1.0 / 3
	// shareError is what a share of a sample may be off by.
	shareError = 0.02
)

// differences compares a family with what the job file says about it.
func differences(h job.HBase, family map[string]string) []string {
	want := hbase.TableSpec{Family: h.Family, Create: h.Create}.Attributes()
	usual := map[string]string{"COMPRESSION": "NONE", "TTL": hbase.Forever, "VERSIONS": "1", "BLOOMFILTER": "ROW", "DATA_BLOCK_ENCODING": "NONE", "BLOCKSIZE": "65536"}
	var all []string
	for _, name := range h.Create.Given {
		have := cmp.Or(family[name], usual[name])
		if name == "TTL" && have == "FOREVER" {
			have = hbase.Forever
		}
		if !strings.EqualFold(have, want[name]) {
			all = append(all, fmt.Sprintf("%s is %s, where the job file says %s", name, have, want[name]))
		}
	}
	return all
}

// note keeps what a person should know, for the log and the report.
func (d *hbaseTable) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.Log.Warn(text, "table", d.Job.HBase.Table, "cluster", d.Job.HBase.Clusters[d.cluster].Name)
	d.noted = append(d.noted, text)
}

func (d *hbaseTable) notes() []string { return d.noted }

// compareTable says where an existing table is not as the job file says. It
// changes nothing.
func (d *hbaseTable) compareTable(table *hbase.Table) {
	h := d.Job.HBase
	for _, text := range differences(h, table.Families[h.Family]) {
		d.note("family %s of table %s: %s; the table is left as it is", h.Family, h.Table, text)
	}
	d.fsync = table.Attributes["DURABILITY"] == "FSYNC_WAL"
}

// prepareTable makes the table, if there is none, with regions that share the
// rows; else it says, once a run, whether one region would take too many of them.
func (d *hbaseTable) prepareTable(ctx context.Context, p *part) error {
	h := d.Job.HBase
	table, err := d.hb.Table(ctx, h.Table)
	if err != nil {
		return err
	}
	if table == nil {
		return d.makeTable(ctx, p)
	}
	if d.looked || p.plan.Groups() < fewKeys {
		return nil
	}
	d.looked = true
	regions, err := d.hb.Regions(ctx, h.Table)
	if err == nil {
		d.checkShares(regions, d.sampleKeys(ctx, p))
	}
	return err
}

func (d *hbaseTable) makeTable(ctx context.Context, p *part) error {
	h := d.Job.HBase
	var keys []weightedKey
	if p.plan.Groups() >= fewKeys {
		keys = d.sampleKeys(ctx, p)
	}
	splits := d.src.codec.Splits(maxRegions)
	if len(splits) == 0 {
		splits = quantiles(keys)
	}
	d.looked = true
	d.Log.Info("creating the table", "table", h.Table, "family", h.Family, "regions", len(splits)+1)
	err := d.hb.CreateTable(ctx, hbase.TableSpec{Name: h.Table, Family: h.Family, Create: h.Create, Splits: splits})
	if failure.ClassOf(err) == failure.Sink {
		err = d.Job.ErrorAt("sink.hbase.create.compression", failure.New(failure.Sink, err,
			"may the user create tables and namespaces, and have all region servers what create: asks for, the compression above all?"))
	}
	if err == nil {
		d.checkShares(regionsAt(splits), keys)
	}
	return err
}

// regionsAt are the regions of a table that is split at keys.
func regionsAt(splits [][]byte) []hbase.Region {
	regions := []hbase.Region{{}}
	for i, s := range splits {
		regions[i].End = s
		regions = append(regions, hbase.Region{Start: s})
	}
	return regions
}

// checkShares warns of a region that would take more than its share.
func (d *hbaseTable) checkShares(regions []hbase.Region, keys []weightedKey) {
	i, share := hottest(regions, keys)
	if share <= hotShare+shareError {
		return
	}
	remedy := "begin row_key with {salt}"
	if len(d.src.codec.Splits(0)) > 0 {
		remedy = "let the salt be over dimensions of every level that have many values"
	}
	d.note("the region of table %s that begins with %s would take %.0f %% of the rows: %s, or split the region (%d regions in all)",
		d.Job.HBase.Table, strconv.Quote(string(regions[i].Start)), 100*share, remedy, len(regions))
}

// A weightedKey stands for some keys.
type weightedKey struct {
	key    []byte
	weight float64
}

// saltKeys stand for the rows of each salt, as if they were alike in number.
func saltKeys(starts [][]byte) []weightedKey {
	if len(starts) == 0 {
		return nil
	}
	keys := []weightedKey{{nil, 1}}
	for _, s := range starts {
		keys = append(keys, weightedKey{s, 1})
	}
	return keys
}

// sampleKeys gives keys of the groups of a plan, in order. Without a sample, which
// the job's limits may not allow and a query of its own does not have, there are
// those of the salts, if any, and a run goes on: none is needed for it to be right.
func (d *hbaseTable) sampleKeys(ctx context.Context, p *part) []weightedKey {
	var keys []weightedKey
	for i := range p.plan.Units {
		some, err := d.sampleUnit(ctx, &p.plan.Units[i])
		if err != nil {
			d.Log.Info("how the regions share the rows is not known", "table", d.Job.HBase.Table, "reason", err)
			return saltKeys(d.src.codec.Splits(0))
		}
		keys = append(keys, some...)
	}
	if len(keys) == 0 {
		return saltKeys(d.src.codec.Splits(0))
	}
	slices.SortFunc(keys, func(a, b weightedKey) int { return bytes.Compare(a.key, b.key) })
	return keys
}

func (d *hbaseTable) sampleUnit(ctx context.Context, up *scatter.UnitPlan) ([]weightedKey, error) {
	sample, err := d.src.planner.SampleGroups(ctx, up, sampledKeys)
	if err != nil {
		return nil, err
	}
	var keys []weightedKey
	for k := range sample.Len() {
		key, err := d.src.codec.AppendLeading(nil, up.Unit, sample.Row(k), k)
		if err != nil {
			return nil, err
		}
		keys = append(keys, weightedKey{key, float64(up.Groups) / float64(sample.Len())})
	}
	return keys, nil
}

// quantiles gives the first keys of regions of the same weight.
func quantiles(keys []weightedKey) [][]byte {
	total := 0.0
	for _, k := range keys {
		total += k.weight
	}
	if total < fewKeys {
		return nil
	}
	regions := min(max(minRegions, int(total/keysPerRegion)), maxRegions)
	var splits [][]byte
	sum := 0.0
	for i := 1; i < len(keys); i++ {
		sum += keys[i-1].weight
		if sum < total*float64(len(splits)+1)/float64(regions) {
			continue
		}
		if split := shortest(keys[i-1].key, keys[i].key); split != nil {
			splits = append(splits, split)
		}
	}
	return splits[:min(len(splits), regions-1)]
}

// shortest is the shortest key above a and not above b; nil if there is none.
func shortest(a, b []byte) []byte {
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return bytes.Clone(b[:i+1])
		}
	}
	return nil
}

// hottest is the region with the greatest part of the weight.
func hottest(regions []hbase.Region, keys []weightedKey) (region int, share float64) {
	weights := make([]float64, len(regions))
	total := 0.0
	for _, k := range keys {
		i, found := slices.BinarySearchFunc(regions, k.key, func(r hbase.Region, key []byte) int { return bytes.Compare(r.Start, key) })
		if !found {
			i--
		}
		weights[i] += k.weight
		total += k.weight
	}
	for i, w := range weights {
		if w > weights[region] {
			region = i
		}
	}
	if total == 0 {
		return 0, 0
	}
	return region, weights[region] / total
}
