package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// Kind is what an error of a query means for the slice that ran it.
type Kind int

// The kinds of query errors.
const (
	// KindPermanent will come again on every node: syntax, unknown names,
	// authorisation, and every code that is not in the table.
	KindPermanent Kind = iota
	// KindLimit is one of the limits that the mover itself has set.
	KindLimit
	// KindElsewhere is a fault of a node or of the way to it.
	KindElsewhere
	// KindLater is a server that has too much to do.
	KindLater
	// KindCancelled is our own cancellation.
	KindCancelled
)

type codeInfo struct {
	kind   Kind
	remedy string
}

const (
	remedyLimit  = "raise the limit, in the job's limits or in the user's profile, or cut the work finer with scatter.slices"
	remedyLogin  = "check source.username and source.password (or password_file)"
	remedyNames  = "check source.table, the dimensions and the metrics against the columns of the table"
	remedyGrants = "grant SELECT on the source table and on system.clusters, system.tables and system.settings to the user"
)

// codes holds the meaning of ClickHouse's error codes (src/Common/ErrorCodes.cpp).
// A code that is not here is permanent.
func codes(code int32) (codeInfo, bool) {
	switch code {
	case 158, 159, 160, 241, 307, 396:
		return codeInfo{KindLimit, remedyLimit}, true
	case 3, 32, 33, 40, 95, 96, 100, 101, 102, 198, 209, 210, 236, 254, 265, 279, 297, 369, 415, 416, 425, 519, 999, 1018:
		return codeInfo{KindElsewhere, ""}, true
	case 173, 201, 202, 203, 252, 364, 439, 700, 745, 749, 777, 778, 1019, 1020:
		return codeInfo{KindLater, ""}, true
	case 394, 735:
		return codeInfo{KindCancelled, ""}, true
	case 192, 193, 194, 516:
		return codeInfo{KindPermanent, remedyLogin}, true
	case 291, 497:
		return codeInfo{KindPermanent, remedyGrants}, true
	case 10, 16, 36, 42, 43, 46, 47, 60, 62, 63, 81, 215:
		return codeInfo{KindPermanent, remedyNames}, true
	case 395:
		return codeInfo{KindPermanent, "an expression of the job refused a row with throwIf: correct the rows or the expression"}, true
	case 115:
		return codeInfo{KindPermanent, "the server does not know a setting of the mover: report its version"}, true
	case 164, 452:
		return codeInfo{KindPermanent, "the user must be allowed to change the limits of its own queries: " +
			"readonly=0 or readonly=2, and no constraint on max_execution_time, max_memory_usage and max_bytes_before_external_group_by"}, true
	}
	return codeInfo{}, false
}

// A QueryError is an error of a query or of the connection that carried it.
type QueryError struct {
	// Node is the address of the node that was asked.
	Node string
	// Code is ClickHouse's error code; 0 when the server did not send one.
	Code int32
	Kind Kind
	Err  error
}

// Error names the node and the cause, without the server's stack trace.
func (e *QueryError) Error() string {
	if x, ok := errors.AsType[*ch.Exception](e.Err); ok {
		return fmt.Sprintf("ClickHouse %s: code %d: %s", e.Node, x.Code, shorten(x.Message))
	}
	return fmt.Sprintf("ClickHouse %s: %v", e.Node, e.Err)
}

// Unwrap gives the driver's error.
func (e *QueryError) Unwrap() error { return e.Err }

// What can be wrong with a source before any query of the job is asked.
var (
	errNoNode    = errors.New("no ClickHouse node can be reached")
	errNoCluster = errors.New("there is no cluster")
	errNoReplica = errors.New("no replica of shard")
	errUnbounded = errors.New("does not apply the mover's settings for this user")
)

// Key is the key of the job file that an error of [Open] is about.
func Key(err error) string {
	var code int32
	if q, ok := errors.AsType[*QueryError](err); ok {
		code = q.Code
	}
	switch {
	case errors.Is(err, errNoNode):
		return "source.addresses"
	case errors.Is(err, errNoCluster):
		return "source.cluster"
	case errors.Is(err, errNoReplica):
		return "source.node_map"
	case code == 193, code == 194, code == 516:
		return "source.password"
	case code == 192, code == 164, code == 452, errors.Is(err, errUnbounded):
		return "source.username"
	}
	return "source"
}

// ownSQL is what servers quote of the query around an expression of the job
// file: it tells the reader nothing, and buries what does.
var ownSQL = regexp.MustCompile(`(?s)\s*(?:In scope|In query) SELECT .*| SETTINGS (?:\w+ = '\w+'(?:, )?)+(?:\w+\.+)?`)

// shorten cuts what servers append: the mover's own SQL and the stack.
func shorten(message string) string {
	message = strings.TrimSpace(ownSQL.ReplaceAllString(message, ""))
	if i := strings.Index(message, "Stack trace:"); i > 0 {
		message = strings.TrimSpace(message[:i])
	}
	const most = 600
	if len(message) > most {
		message = message[:most] + "…"
	}
	return message
}

// garbled is what a server says that could not read what its peer sent. 18.16
// keeps connections to its peers after queries that failed in the middle, and
// reads what is left of their answers as the next one's: the code is then any.
const garbled = "while receiving packet from"

// classify wraps err once, at the boundary, with the class that it has in a
// run; nil stays nil.
func classify(node string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*QueryError](err); ok {
		return err
	}
	q := &QueryError{Node: node, Err: err}
	remedy := ""
	var x *ch.Exception
	switch {
	case errors.As(err, &x):
		q.Code = x.Code
		info, known := codes(x.Code)
		q.Kind, remedy = info.kind, info.remedy
		switch {
		case known:
		case strings.Contains(x.Message, garbled):
			q.Kind = KindElsewhere
		default:
			remedy = fmt.Sprintf("error code %d is not in the mover's table, so it is taken as permanent", x.Code)
		}
	case errors.Is(err, context.Canceled):
		q.Kind = KindCancelled
	case isNetwork(err):
		q.Kind = KindElsewhere
	}
	return failure.New(q.class(), q, remedy)
}

func (e *QueryError) class() failure.Class {
	switch e.Kind {
	case KindElsewhere, KindLater, KindCancelled:
		return failure.Transient
	default:
		return failure.Source
	}
}

func isNetwork(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, ch.ErrAcquireConnTimeout) {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// KindOf gives the kind of a query error, and KindPermanent for any other.
func KindOf(err error) Kind {
	if q, ok := errors.AsType[*QueryError](err); ok {
		return q.Kind
	}
	return KindPermanent
}
