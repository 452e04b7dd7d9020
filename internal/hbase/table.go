package hbase

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/cenkalti/backoff/v4"
	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// metaTable is HBase's catalogue of regions.
const metaTable = "hbase:meta"

// Table describes an existing table.
type Table struct {
	Name string
	// Attributes are those of the table itself, such as DURABILITY.
	Attributes map[string]string
	// Families are the attributes of each column family, such as VERSIONS, by name.
	Families map[string]map[string]string
	// Enabled is false for a table that is disabled or changing its state.
	Enabled bool
}

// Table describes a table; it is nil if there is none of the name.
func (c *Client) Table(ctx context.Context, name string) (*Table, error) {
	response := &pb.GetTableDescriptorsResponse{}
	err := c.admin(ctx, "describe table "+name, callTimeout, func(ctx context.Context, m master) error {
		err := m.call(ctx, "GetTableDescriptors", &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{tableName(name)}}, response)
		if exceptionOf(err) == noNamespace {
			return nil // nor is there a table
		}
		return err
	})
	schemas := response.GetTableSchema()
	if err != nil || len(schemas) == 0 {
		return nil, err
	}
	t := &Table{Name: name, Attributes: attributesOf(schemas[0].GetAttributes()), Families: map[string]map[string]string{}}
	for _, f := range schemas[0].GetColumnFamilies() {
		t.Families[string(f.GetName())] = attributesOf(f.GetAttributes())
	}
	t.Enabled, err = c.Enabled(ctx, name)
	return t, err
}

func attributesOf(pairs []*pb.BytesBytesPair) map[string]string {
	all := make(map[string]string, len(pairs))
	for _, a := range pairs {
		all[string(a.GetFirst())] = string(a.GetSecond())
	}
	return all
}

func tableName(name string) *pb.TableName {
	namespace, qualifier, ok := strings.Cut(name, ":")
	if !ok {
		namespace, qualifier = "default", name
	}
	return &pb.TableName{Namespace: []byte(namespace), Qualifier: []byte(qualifier)}
}

// Enabled tells whether a table is enabled: puts into a disabled one would
// be retried until their time is over.
func (c *Client) Enabled(ctx context.Context, name string) (bool, error) {
	r, err := c.Get(ctx, metaTable, []byte(name), 0, 0)
	if err != nil {
		return false, err
	}
	state, ok := r.Value("table", "state")
	if !ok {
		return false, nil
	}
	// TableState {required State state = 1}, where ENABLED is 0.
	number, kind, n := protowire.ConsumeTag(state)
	if n < 0 || number != 1 || kind != protowire.VarintType {
		return false, failure.Errorf(failure.Sink, "HBase %s: the state of table %s in hbase:meta is %x, which is unknown", c.Name(), name, state)
	}
	value, _ := protowire.ConsumeVarint(state[n:])
	return value == 0, nil
}

// Region is a region of a table: the keys in [Start, End); an empty bound is none.
type Region struct {
	Start, End []byte
	// Server is host:port as registered, empty while the region moves.
	Server string
	// Name is the region's name in hbase:meta.
	Name string
}

// pbufMagic stands in front of protobuf messages in hbase:meta.
var pbufMagic = []byte("PBUF")

// Regions lists a table's regions in the order of their keys, without those
// that were split and live on as their daughters. No region means no table. The
// regions cover all keys, each once: a list that was read while a region split
// may not, and is read again.
func (c *Client) Regions(ctx context.Context, table string) ([]Region, error) {
	var regions []Region
	err := backoff.Retry(func() error {
		var err error
		if regions, err = c.listRegions(ctx, table); err != nil {
			return backoff.Permanent(err)
		}
		if !tile(regions) {
			return failure.Errorf(failure.Transient, "HBase %s: the regions of table %s in hbase:meta do not follow each other", c.Name(), table)
		}
		return nil
	}, backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(scanPatience)), ctx))
	return regions, err
}

// tile tells whether regions cover all keys, each once.
func tile(regions []Region) bool {
	var end []byte
	for i, r := range regions {
		if !bytes.Equal(r.Start, end) || i > 0 && len(end) == 0 {
			return false
		}
		end = r.End
	}
	return len(end) == 0
}

func (c *Client) listRegions(ctx context.Context, table string) ([]Region, error) {
	var regions []Region
	// Region names are table,start key,id. hbase:meta compares the three one by
	// one, and ' ' is before ',': these are the bounds that HBase itself takes.
	err := c.scan(ctx, rangeScan{table: metaTable, next: []byte(table + ",,"), stop: []byte(table + " ,,")}, func(r hrpc.ResultV2) error {
		region := Region{}
		var info []byte
		for _, cell := range r.Cells {
			switch string(cell.Qualifier()) {
			case "regioninfo":
				info, region.Name = cell.Value(), string(cell.Row())
			case "server":
				region.Server = string(cell.Value())
			}
		}
		var message pb.RegionInfo
		if !bytes.HasPrefix(info, pbufMagic) {
			return nil // not a region's row
		}
		if err := proto.Unmarshal(info[len(pbufMagic):], &message); err != nil {
			return fmt.Errorf("HBase %s: read region %s: %w", c.Name(), region.Name, err)
		}
		if message.GetOffline() || message.GetSplit() {
			return nil
		}
		region.Start, region.End = message.GetStartKey(), message.GetEndKey()
		regions = append(regions, region)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(regions) == 0 {
		return nil, c.classify(ctx, "regions of "+table, gohbase.TableNotFound)
	}
	return regions, nil
}
