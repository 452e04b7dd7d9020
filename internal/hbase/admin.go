package hbase

import (
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
	"google.golang.org/protobuf/proto"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// The administration of tables goes to the master by calls of our own: those of
// gohbase put every table into the namespace "default".

// TableSpec is a table to create.
type TableSpec struct {
	// Name may begin with a namespace and a colon.
	Name   string
	Family string
	// Create holds the family's attributes.
	Create job.Create
	// Splits are the first keys of all regions but the first.
	Splits [][]byte
}

// Forever is HBase's way to write a TTL that never ends, in seconds.
const Forever = "2147483647"

// Attributes are those of the family that HBase calls by these names.
func (s TableSpec) Attributes() map[string]string {
	c := s.Create
	attributes := map[string]string{"BLOOMFILTER": "ROW", "TTL": Forever}
	set := func(name, value string, given bool) {
		if given {
			attributes[name] = value
		}
	}
	set("VERSIONS", strconv.Itoa(c.Versions), c.Versions > 0)
	set("COMPRESSION", c.Compression, c.Compression != "")
	set("TTL", strconv.FormatInt(int64(c.TTL/time.Second), 10), c.TTL > 0)
	set("BLOOMFILTER", c.Bloom, c.Bloom != "")
	set("DATA_BLOCK_ENCODING", c.BlockEncoding, c.BlockEncoding != "")
	set("BLOCKSIZE", strconv.FormatInt(c.BlockSize, 10), c.BlockSize > 0)
	return attributes
}

func (s TableSpec) request() *pb.CreateTableRequest {
	family := &pb.ColumnFamilySchema{Name: []byte(s.Family)}
	for name, value := range s.Attributes() {
		family.Attributes = append(family.Attributes, &pb.BytesBytesPair{First: []byte(name), Second: []byte(value)})
	}
	return &pb.CreateTableRequest{
		TableSchema: &pb.TableSchema{TableName: tableName(s.Name), ColumnFamilies: []*pb.ColumnFamilySchema{family}},
		SplitKeys:   s.Splits,
	}
}

// The exceptions of the master that are answers rather than errors.
const (
	tableExists     = "org.apache.hadoop.hbase.TableExistsException"
	noNamespace     = "org.apache.hadoop.hbase.NamespaceNotFoundException"
	namespaceExists = "org.apache.hadoop.hbase.NamespaceExistException"
)

// CreateTable makes a table, and its namespace if there is none, and returns
// when it is enabled and every region has a server. Another process that made it
// first is not an error: the caller should check the table that is there.
func (c *Client) CreateTable(ctx context.Context, spec TableSpec) error {
	what := "create table " + spec.Name
	err := c.admin(ctx, what, adminTimeout, func(ctx context.Context, m master) error {
		err := m.procedure(ctx, "CreateTable", spec.request(), &pb.CreateTableResponse{})
		if exceptionOf(err) == noNamespace {
			err = m.createIn(ctx, spec)
		}
		if exceptionOf(err) == tableExists {
			return nil
		}
		if failed, ok := errors.AsType[*procedureError](err); ok && !permanentException(failed.class) {
			// A table that cannot be opened, for example for want of a compression codec.
			return failure.New(failure.Sink, fmt.Errorf("HBase %s, %s: %w", c.Name(), what, failed), "see the master's log; is the compression codec installed on the region servers?")
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.waitOnline(ctx, spec.Name)
}

// createIn makes the namespace, and then the table. The master takes a moment
// to know the namespace.
func (m master) createIn(ctx context.Context, spec TableSpec) error {
	descriptor := &pb.NamespaceDescriptor{Name: tableName(spec.Name).GetNamespace()}
	err := m.call(ctx, "CreateNamespace", &pb.CreateNamespaceRequest{NamespaceDescriptor: descriptor}, &pb.CreateNamespaceResponse{})
	if err != nil && exceptionOf(err) != namespaceExists {
		return err
	}
	pause := backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxElapsedTime(callTimeout)), ctx)
	return backoff.Retry(func() error {
		err := m.procedure(ctx, "CreateTable", spec.request(), &pb.CreateTableResponse{})
		if exceptionOf(err) == noNamespace {
			return err
		}
		return backoff.Permanent(err)
	}, pause)
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
	return c.admin(ctx, "drop table "+name, adminTimeout, func(ctx context.Context, m master) error {
		return m.procedure(ctx, "DeleteTable", &pb.DeleteTableRequest{TableName: tableName(name)}, &pb.DeleteTableResponse{})
	})
}

// DisableTable takes a table out of service.
func (c *Client) DisableTable(ctx context.Context, name string) error {
	return c.admin(ctx, "disable table "+name, adminTimeout, func(ctx context.Context, m master) error {
		return m.procedure(ctx, "DisableTable", &pb.DisableTableRequest{TableName: tableName(name)}, &pb.DisableTableResponse{})
	})
}

// EnableTable puts a table into service.
func (c *Client) EnableTable(ctx context.Context, name string) error {
	return c.admin(ctx, "enable table "+name, adminTimeout, func(ctx context.Context, m master) error {
		return m.procedure(ctx, "EnableTable", &pb.EnableTableRequest{TableName: tableName(name)}, &pb.EnableTableResponse{})
	})
}

// admin runs f with a client of the master that lives as long as the call:
// gohbase's has no Close, so its connections are ended here.
func (c *Client) admin(ctx context.Context, what string, timeout time.Duration, f func(context.Context, master) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conns := newConnections(c.cluster.NodeMap)
	defer conns.close()
	quiet := newComplaints(c.log)
	a := gohbase.NewAdminClient(strings.Join(c.cluster.ZooKeeper, ","), c.options(conns, quiet)...)
	rpc, ok := a.(gohbase.RPCClient)
	if !ok {
		return errors.New("gohbase's client of the master sends no calls of others")
	}
	return c.classify(ctx, what, f(limited, master{rpc}))
}

// A master sends calls to HBase's master.
type master struct{ rpc gohbase.RPCClient }

// call sends a request and fills the response.
func (m master) call(ctx context.Context, name string, request, response proto.Message) error {
	answer, err := m.rpc.SendRPC(&masterCall{ctx: ctx, name: name, request: request, response: response, result: make(chan hrpc.RPCResult, 1)})
	if err == nil && answer != response {
		return fmt.Errorf("the master answered %s by a %T", name, answer)
	}
	return err
}

// procedure sends a request that begins a procedure, and waits for its end.
func (m master) procedure(ctx context.Context, name string, request proto.Message, response interface {
	proto.Message
	GetProcId() uint64
}) error {
	if err := m.call(ctx, name, request, response); err != nil {
		return err
	}
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for {
		state, err := m.rpc.SendRPC(hrpc.NewGetProcedureState(ctx, response.GetProcId()))
		if err != nil {
			return err
		}
		result, ok := state.(*pb.GetProcedureResultResponse)
		switch {
		case !ok, result.GetState() == pb.GetProcedureResultResponse_NOT_FOUND:
			return fmt.Errorf("the master does not know its procedure %d any more", response.GetProcId())
		case result.GetState() == pb.GetProcedureResultResponse_FINISHED && result.GetException() == nil:
			return nil
		case result.GetState() == pb.GetProcedureResultResponse_FINISHED:
			g := result.GetException().GetGenericException()
			return &procedureError{class: g.GetClassName(), message: g.GetMessage()}
		}
		sleep(ctx, pause.NextBackOff())
	}
}

// A procedureError is the exception that a procedure of the master ended with.
type procedureError struct{ class, message string }

func (e *procedureError) Error() string {
	return shortClass(e.class) + ": " + e.message
}

// exceptionOf is the class of the exception that an error is, empty if it is none.
func exceptionOf(err error) string {
	if err == nil {
		return ""
	}
	if failed, ok := errors.AsType[*procedureError](err); ok {
		return failed.class
	}
	class, _, _ := javaException(err)
	return class
}

func permanentException(class string) bool {
	_, known := permanent[class]
	return known
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
