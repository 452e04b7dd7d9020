package main

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
	"github.com/ck2hbase/ck2hbase/internal/rowkey"
)

// The rows of BufferedMutatorBench.java, as they would come from ClickHouse.

const family = "f"

var sources = []string{"app", "web", "search", "ads", "mail", "push", "feed", "shop", "live", "other"}

// shape is the job that the rows belong to.
type shape struct {
	keys    *rowkey.Codec
	cells   *rowkey.Cells
	columns []string
	unit    job.Unit
}

func newShape(cells int) (shape, error) {
	s := shape{unit: job.Unit{Period: job.Span{Period: "BY_LAST_DAYS_30"}, Date: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}}
	unsigned, text := row.Type{Name: "UInt64", Base: "UInt64", Kind: row.UInt, Bits: 64}, row.Type{Name: "String", Base: "String", Kind: row.String}
	metrics, types := make([]job.Metric, cells), make([]row.Type, cells)
	for i := range metrics {
		metrics[i].Name = fmt.Sprintf("m%d", i)
		s.columns = append(s.columns, metrics[i].Name)
		types[i] = []row.Type{unsigned, {Name: "Float64", Base: "Float64", Kind: row.Float, Bits: 64}, {Name: "Decimal(18, 2)", Base: "Decimal(18, 2)", Kind: row.Decimal, Scale: 2}}[i%3]
	}
	var err error
	s.keys, err = rowkey.Compile(rowkey.Config{
		Template: "{salt}|{shop}|{source}|{tp}|{date}",
		Salt:     &job.Salt{Over: []int{0}, Buckets: 64},
		Dims:     []rowkey.Dim{{Name: "shop", Type: unsigned}, {Name: "source", Type: text}},
		Levels:   []job.Level{{Dimensions: []int{0, 1}}},
		Periods:  []job.Period{"BY_LAST_DAYS_30"},
	})
	if err != nil {
		return shape{}, err
	}
	s.cells, err = rowkey.CompileCells(metrics, types, nil)
	return s, err
}

// appendRow adds row i to a batch.
func (s *shape) appendRow(b *row.Batch, i int64) {
	b.Values = append(b.Values, row.Value{Kind: row.UInt, Num: uint64(i/10*2654435761) & math.MaxUint32}, row.Value{Kind: row.String, Str: sources[i%10]})
	for c := range s.columns {
		value := (uint64(i)*6364136223846793005 + uint64(c)*1442695040888963407) >> 40
		switch c % 3 {
		case 0:
			b.Values = append(b.Values, row.Value{Kind: row.UInt, Num: value})
		case 1:
			b.Values = append(b.Values, row.Value{Kind: row.Float, Num: math.Float64bits(float64(value) / 1024)})
		default:
			b.Values = append(b.Values, row.Value{Kind: row.Decimal, Big: new(big.Int).SetUint64(value)})
		}
	}
}
