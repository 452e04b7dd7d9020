package job

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// sinkFields are the places that rows can go to.
func (d *decoder) sinkFields() []field {
	return append([]field{
		{key: "hbase", typ: "mapping", def: "**this or `file`**", fields: d.hbaseFields(&d.job.HBase), doc: "A table in HBase."},
		{key: "file", typ: "mapping", def: "**this or `hbase`**", fields: d.fileFields(&File{}), read: d.fileSink,
			doc: "Files, for looking at results without a table; see below."},
	}, later("kafka", "clickhouse", "hfile")...)
}

func (d *decoder) sink(n *node) {
	d.mapping(n, d.sinkFields())
	if n.kind != kindMap {
		return
	}
	hbase, file := n.get("hbase"), n.get("file")
	switch {
	case hbase == nil && file == nil && !slices.ContainsFunc(n.keys, func(e entry) bool { return nearest(e.key, []string{"hbase", "file"}) != "" }):
		d.report(n.at, "", "%s wants hbase or file", name(n))
	case hbase != nil && file != nil:
		d.report(file.at, "keep one", "%s: rows go to hbase or to files, not to both", name(n))
	}
}

func (d *decoder) fileSink(n *node) {
	f := &File{}
	d.mapping(n, d.fileFields(f))
	d.job.File = f
	d.after = append(d.after, d.checkFile)
	if f.Format != "" || f.Path == "" {
		return
	}
	endings := map[string]FileFormat{".ndjson": NDJSON, ".jsonl": NDJSON, ".csv": CSV, ".parquet": Parquet}
	if f.Format = endings[filepath.Ext(f.Path)]; f.Format == "" {
		d.report(n.at, "write format: ndjson, csv or parquet", "%s: the path's ending does not say what format the file has", name(n))
	}
}

func (d *decoder) fileFields(f *File) []field {
	return []field{
		{key: "path", typ: "text", required: true, read: d.textField(&f.Path, checkFilePath),
			doc: "Where the file goes. `{date}`, `{lvl}` and `{tp}` make a file for each date, level and period; without them there are columns for them in one file."},
		{key: "format", typ: "text", def: "by the path's ending",
			read: d.chosenFormat(f),
			doc:  "`ndjson`, `csv` or `parquet`."},
	}
}

func (d *decoder) chosenFormat(f *File) func(*node) {
	return func(n *node) {
		if s, ok := d.choice(n, []string{string(NDJSON), string(CSV), string(Parquet)}, nil); ok {
			f.Format = FileFormat(s)
		}
	}
}

func checkFilePath(s string) error {
	rest := filePlaceholders.Replace(s)
	switch {
	case strings.ContainsAny(rest, "{}"):
		return fmt.Errorf("the placeholders of a path are {date}, {lvl} and {tp}")
	case strings.HasSuffix(s, "/"):
		return fmt.Errorf("it is the path of a file, not of a directory")
	}
	return nil
}

var filePlaceholders = strings.NewReplacer("{date}", "", "{lvl}", "", "{tp}", "")

// checkFile refuses what is said about keys and cells: a file has none.
func (d *decoder) checkFile() {
	for _, m := range d.job.Metrics {
		if m.Encode != EncodeAuto || m.Null.Mode != NullSkip {
			d.atPath("metrics."+m.Name, "remove encode and null: columns of a file have the types of ClickHouse", "metrics.%s: a file has no cells", m.Name)
		}
	}
	for i, dim := range d.job.Dimensions {
		if dim.Null.Mode != NullReject {
			d.atPath(d.dimensionPaths[i], "remove null: a file has NULL", "dimension %s: a file has no keys", dim.Name)
		}
	}
	if d.job.Verify.Level == VerifyFull {
		d.atPath("verify.level", "remove it", "verify.level: full: a file has no cells; count reads every row of it back")
	}
	for _, name := range []string{"date", "level", "period"} {
		isDim := slices.ContainsFunc(d.job.Dimensions, func(x Dimension) bool { return x.Name == name })
		if isDim || slices.ContainsFunc(d.job.Metrics, func(m Metric) bool { return m.Name == name }) {
			d.atPath("sink.file", "give it another name", "%s: the file has a column of that name already", name)
		}
	}
}
