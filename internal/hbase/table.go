package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
	"github.com/tsuna/gohbase/pb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// metaTable is HBase's catalogue of regions.
const metaTable = "hbase:meta"

// Table describes an existing table.
type Table struct {
	Name string
	// Families are the attributes of each column family, such as VERSIONS, by name.
	Families map[string]map[string]string
	// Enabled is false for a table that is disabled or changing its state.
	Enabled bool
}

// Table describes a table; it is nil if there is none of the name.
func (c *Client) Table(ctx context.Context, name string) (*Table, error) {
	call := &masterCall{name: "GetTableDescriptors", request: &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{tableName(name)}},
		response: &pb.GetTableDescriptorsResponse{}, result: make(chan hrpc.RPCResult, 1)}
	var schemas []*pb.TableSchema
	err := c.admin(ctx, "describe table "+name, callTimeout, func(ctx context.Context, a gohbase.AdminClient) error {
		call.ctx = ctx
		msg, err := a.(gohbase.RPCClient).SendRPC(call)
		if err == nil {
			schemas = msg.(*pb.GetTableDescriptorsResponse).GetTableSchema()
		}
		return err
	})
	if err != nil || len(schemas) == 0 {
		return nil, err
	}
	t := &Table{Name: name, Families: map[string]map[string]string{}}
	for _, f := range schemas[0].GetColumnFamilies() {
		attributes := map[string]string{}
		for _, a := range f.GetAttributes() {
			attributes[string(a.GetFirst())] = string(a.GetSecond())
		}
		t.Families[string(f.GetName())] = attributes
	}
	t.Enabled, err = c.Enabled(ctx, name)
	return t, err
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

// TableSpec is a table to create.
type TableSpec struct {
	Name   string
	Family string
	// Create holds the family's attributes.
	Create job.Create
	// Splits are the first keys of all regions but the first.
	Splits [][]byte
}

// maxTTL is HBase's way to write "never", in seconds.
const maxTTL = "2147483647"

// CreateTable makes a table and returns when it is enabled and every region
// has a server. Another process that made it first is not an error: the caller
// should check the table that is there.
func (c *Client) CreateTable(ctx context.Context, spec TableSpec) error {
	if strings.Contains(spec.Name, ":") {
		return failure.New(failure.Sink, fmt.Errorf("HBase %s: creating the table %s: namespaces are not supported yet", c.Name(), spec.Name), "create it in the HBase shell")
	}
	attributes := map[string]string{"BLOOMFILTER": "ROW", "TTL": maxTTL}
	if spec.Create.Versions > 0 {
		attributes["VERSIONS"] = strconv.Itoa(spec.Create.Versions)
	}
	if spec.Create.Compression != "" {
		attributes["COMPRESSION"] = spec.Create.Compression
	}
	if spec.Create.TTL > 0 {
		attributes["TTL"] = strconv.FormatInt(int64(spec.Create.TTL/time.Second), 10)
	}
	what := "create table " + spec.Name
	err := c.admin(ctx, what, adminTimeout, func(ctx context.Context, a gohbase.AdminClient) error {
		err := a.CreateTable(hrpc.NewCreateTable(ctx, []byte(spec.Name), map[string]map[string]string{spec.Family: attributes}, hrpc.SplitKeys(spec.Splits)))
		if err != nil && strings.Contains(err.Error(), "org.apache.hadoop.hbase.TableExistsException") {
			return nil
		}
		if err != nil && strings.Contains(err.Error(), "procedure exception") {
			// A table that cannot be opened, for example for want of a compression codec.
			return failure.New(failure.Sink, fmt.Errorf("HBase %s, %s: %s", c.Name(), what, shortError(err.Error())), "see the master's log; is the compression codec installed on the region servers?")
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.waitOnline(ctx, spec.Name)
}

// waitOnline waits until a table is enabled and all its regions have servers.
func (c *Client) waitOnline(ctx context.Context, table string) error {
	limited, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	var reason error
	online := func() (err error) {
		defer func() { reason = err }()
		regions, err := c.Regions(limited, table)
		if err != nil {
			return err
		}
		for _, r := range regions {
			if r.Server == "" {
				return fmt.Errorf("the region of table %s from %q on has no server", table, r.Start)
			}
		}
		if enabled, err := c.Enabled(limited, table); err != nil || !enabled {
			return errors.Join(fmt.Errorf("the table %s is not enabled", table), err)
		}
		return nil
	}
	err := backoff.Retry(online, backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond)), limited))
	if err != nil && ctx.Err() == nil {
		return failure.New(failure.Transient, fmt.Errorf("HBase %s: table %s is not ready after %v: %w", c.Name(), table, adminTimeout, reason), "see the master's log")
	}
	return c.classify(ctx, "wait for table "+table, err)
}

// DropTable disables and deletes a table.
func (c *Client) DropTable(ctx context.Context, name string) error {
	if err := c.DisableTable(ctx, name); err != nil {
		return err
	}
	return c.admin(ctx, "drop table "+name, adminTimeout, func(ctx context.Context, a gohbase.AdminClient) error {
		return a.DeleteTable(hrpc.NewDeleteTable(ctx, []byte(name)))
	})
}

// DisableTable takes a table out of service.
func (c *Client) DisableTable(ctx context.Context, name string) error {
	return c.admin(ctx, "disable table "+name, adminTimeout, func(ctx context.Context, a gohbase.AdminClient) error {
		return a.DisableTable(hrpc.NewDisableTable(ctx, []byte(name)))
	})
}

// EnableTable puts a table into service.
func (c *Client) EnableTable(ctx context.Context, name string) error {
	return c.admin(ctx, "enable table "+name, adminTimeout, func(ctx context.Context, a gohbase.AdminClient) error {
		return a.EnableTable(hrpc.NewEnableTable(ctx, []byte(name)))
	})
}

// admin runs f with a client of the master that lives as long as the call:
// gohbase's has no Close, so its connections are ended here.
func (c *Client) admin(ctx context.Context, what string, timeout time.Duration, f func(context.Context, gohbase.AdminClient) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conns := newConnections(c.cluster.NodeMap)
	defer conns.close()
	quiet := newComplaints(c.log)
	a := gohbase.NewAdminClient(strings.Join(c.cluster.ZooKeeper, ","), c.options(conns, quiet)...)
	return c.classify(ctx, what, f(limited, a))
}

// masterCall is a request to the master that gohbase has no type for.
type masterCall struct {
	ctx               context.Context
	name              string
	request, response proto.Message
	region            hrpc.RegionInfo
	result            chan hrpc.RPCResult
}

func (m *masterCall) Table() []byte                    { return nil }
func (m *masterCall) Key() []byte                      { return nil }
func (m *masterCall) Name() string                     { return m.name }
func (m *masterCall) Description() string              { return m.name }
func (m *masterCall) Region() hrpc.RegionInfo          { return m.region }
func (m *masterCall) SetRegion(region hrpc.RegionInfo) { m.region = region }
func (m *masterCall) ToProto() proto.Message           { return m.request }
func (m *masterCall) NewResponse() proto.Message       { return m.response }
func (m *masterCall) ResultChan() chan hrpc.RPCResult  { return m.result }
func (m *masterCall) Context() context.Context         { return m.ctx }

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
