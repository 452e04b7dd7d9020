package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// A QueryError is an error of a query or of the connection that carried it.
type QueryError struct {
	// Node is the address of the node that was asked.
	Node string
	// Code is ClickHouse's error code; 0 when the server did not send one.
	Code int32
	Kind Kind
	// RetryAfter is when a new attempt may have a chance, where the server said
	// so: the time to the end of the quota's interval. 0 means that it is not known.
	RetryAfter time.Duration
	Err        error
}

// Error names the node and the cause, without the server's stack trace.
func (e *QueryError) Error() string {
	return fmt.Sprintf("ClickHouse %s: %s", e.Node, causeText(e.Err))
}

// causeText shortens what the driver and the server say.
func causeText(err error) string {
	if x, ok := errors.AsType[*ch.Exception](err); ok {
		return fmt.Sprintf("code %d: %s", x.Code, shorten(x.Message))
	}
	if h, ok := errors.AsType[*ch.HTTPError](err); ok {
		return fmt.Sprintf("HTTP status %d: %s", h.StatusCode, shorten(h.Err.Error()))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err.Error() // its own text is mostly the settings
	}
	return err.Error()
}

// Unwrap gives the driver's error.
func (e *QueryError) Unwrap() error { return e.Err }

// What can be wrong with a source before any query of the job is asked.
var (
	errNoNode    = errors.New("no ClickHouse node can be reached")
	errNoCluster = errors.New("there is no cluster")
	errNoReplica = errors.New("no replica of shard")
	errUnbounded = errors.New("does not apply the mover's settings for this user")
	errNoSummary = errors.New("the server does not say over HTTP how many rows a result has (result_rows in X-ClickHouse-Summary)")
	errOldHTTP   = errors.New("the server is too old for HTTP")
)

const remedyNative = "set source.protocol: native, with the port of that protocol in source.addresses; over HTTP the server must be 22.8 or later, " +
	"and nothing between may take X-ClickHouse-Summary out of its answers"

// tooOld tells a server that does not know the driver's HTTP protocol.
func tooOld(err error) error {
	if err != nil && strings.Contains(causeText(err), "client_protocol_version") {
		return errOldHTTP
	}
	return err
}

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
	case errors.Is(err, errOldHTTP), errors.Is(err, errNoSummary):
		return "source.protocol"
	case errors.Is(err, errNoPort):
		return "source.node_map"
	case tlsRemedy(err) != "":
		return "source.tls"
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
// run; nil stays nil. ctx is that of the query.
func (n *Node) classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*QueryError](err); ok {
		return err
	}
	q := &QueryError{Node: n.Addr, Err: err}
	var remedy string
	x, ok := errors.AsType[*ch.Exception](err)
	switch {
	case ok:
		remedy = n.classifyException(ctx, q, x)
	case errors.Is(err, context.Canceled):
		q.Kind = KindCancelled
	default:
		q.Kind, remedy = classifyWay(err)
	}
	return failure.New(q.class(), q, remedy)
}

// refuse wraps an error about a value or a row that has arrived: it will come
// again.
func (n *Node) refuse(err error) error {
	if err == nil || failure.ClassOf(err) != failure.Bug {
		return err
	}
	return failure.New(failure.Source, &QueryError{Node: n.Addr, Err: err}, "")
}

// classifyException is for what the server itself says.
func (n *Node) classifyException(ctx context.Context, q *QueryError, x *ch.Exception) (remedy string) {
	q.Code = x.Code
	info, known := codes(x.Code)
	q.Kind, remedy = info.kind, info.remedy
	switch {
	case (x.Code == codeKilled || x.Code == codeCancelled) && ctx.Err() != nil:
		q.Kind, remedy = KindCancelled, ""
	case x.Code == codeKilled && (strings.Contains(x.Message, "Received from ") || !n.listens(context.WithoutCancel(ctx))):
		// A server that shuts down kills its queries, too.
		q.Kind, remedy = KindElsewhere, ""
	case x.Code == codeQuota:
		q.RetryAfter = quotaEnd(x.Message, n.zone, time.Now())
	case known:
	case strings.Contains(x.Message, garbled):
		q.Kind = KindElsewhere
	default:
		remedy = fmt.Sprintf("error code %d is not in the mover's table, so it is taken as permanent", x.Code)
	}
	return remedy
}

// quotaUntil is how servers name the end of a quota's interval.
var quotaUntil = regexp.MustCompile(`Interval will end at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)`)

// quotaEnd is the time until a quota's interval ends, by the server's message
// in its time zone; 0 if it does not say.
func quotaEnd(message string, zone *time.Location, now time.Time) time.Duration {
	m := quotaUntil.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	end, err := time.ParseInLocation(time.DateTime, m[1], zone)
	if err != nil {
		return 0
	}
	// One second more: the message has no fractions.
	return max(0, end.Sub(now)+time.Second)
}

func (e *QueryError) class() failure.Class {
	switch e.Kind {
	case KindElsewhere, KindLater, KindCancelled:
		return failure.Transient
	default:
		return failure.Source
	}
}

// RetryAfter is how long the server asks to wait; 0 where it did not say.
func RetryAfter(err error) time.Duration {
	if q, ok := errors.AsType[*QueryError](err); ok {
		return q.RetryAfter
	}
	return 0
}

// KindOf gives the kind of a query error, and KindPermanent for any other.
func KindOf(err error) Kind {
	if q, ok := errors.AsType[*QueryError](err); ok {
		return q.Kind
	}
	return KindPermanent
}
