package hbase

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tsuna/gohbase"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// permanent are the exceptions that no retry helps, by class name, with the
// advice for whoever reads the error. Every other exception is transient.
var permanent = map[string]string{
	"org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException":       "add the column family to the table, or correct family: in the job file",
	"org.apache.hadoop.hbase.TableNotFoundException":                         "the table was removed: create it, or let the mover do so by running again",
	"org.apache.hadoop.hbase.TableNotEnabledException":                       "enable the table: enable 'NAME' in the HBase shell",
	"org.apache.hadoop.hbase.NamespaceNotFoundException":                     "create the namespace",
	"org.apache.hadoop.hbase.security.AccessDeniedException":                 "grant the user read and write permission on the table",
	"org.apache.hadoop.security.AccessControlException":                      "grant the user read and write permission on the table",
	"org.apache.hadoop.hbase.quotas.SpaceLimitingException":                  "raise the space quota of the table",
	"org.apache.hadoop.hbase.exceptions.RequestTooBigException":              "lower batch: {bytes} in the job file, or raise hbase.ipc.max.request.size",
	"org.apache.hadoop.hbase.exceptions.FailedSanityCheckException":          "the clocks of this machine and the region servers differ by more than HBase allows",
	"org.apache.hadoop.hbase.regionserver.InvalidMutationAttributeException": "",
	// What the server itself marks so; a value above hbase.server.keyvalue.maxsize is one.
	"org.apache.hadoop.hbase.DoNotRetryIOException": "the server will not take this row: if the message is about size, shorten the value or raise hbase.server.keyvalue.maxsize",
}

// javaMark stands in front of the class name in gohbase's errors.
const javaMark = "HBase Java exception "

// javaException finds the class name and the message of the exception that a
// server answered with.
func javaException(err error) (class, message string, ok bool) {
	_, rest, ok := strings.Cut(err.Error(), javaMark)
	if !ok {
		return "", "", false
	}
	class, stack, _ := strings.Cut(rest, ":\n")
	message, _, _ = strings.Cut(stack, "\n")
	message = strings.TrimPrefix(message, class+": ")
	return class, message, true
}

// shortError is an error's text without the Java stack.
func shortError(text string) string {
	if class, message, ok := javaException(errors.New(text)); ok {
		return shortClass(class) + ": " + message
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// shortClass is a class's name without its package.
func shortClass(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// serverError replaces gohbase's text with a Java stack; the cause stays.
type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.cause }

// classify turns an error of gohbase into a failure that says what was done.
// ctx is the caller's, without the deadline of the call: its end is an
// interruption, while the end of the call's own time is a server that did not answer.
func (c *Client) classify(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*failure.Error](err); ok {
		return err
	}
	prefix := fmt.Sprintf("HBase %s, %s", c.Name(), what)
	if ctx.Err() != nil {
		return failure.New(failure.Transient, fmt.Errorf("%s: %w", prefix, context.Cause(ctx)), "")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		text := "no answer in time"
		if last := c.complaints.text(); last != "" {
			text += "; the client's last complaint: " + last
		}
		return failure.New(failure.Transient, fmt.Errorf("%s: %w", prefix, &serverError{text, err}),
			"check the master and the region servers; then run the same command again")
	}
	if errors.Is(err, gohbase.TableNotFound) {
		return failure.New(failure.Sink, fmt.Errorf("%s: %w", prefix, err), permanent["org.apache.hadoop.hbase.TableNotFoundException"])
	}
	if class := exceptionOf(err); class != "" {
		short := fmt.Errorf("%s: %w", prefix, &serverError{shortError(err.Error()), err})
		if advice, known := permanent[class]; known {
			return failure.New(failure.Sink, short, advice)
		}
		return failure.New(failure.Transient, short, "")
	}
	return failure.New(failure.Transient, fmt.Errorf("%s: %w", prefix, err), "")
}

// preflight is a problem found before anything was written.
func preflight(err error, remedy string) error {
	return failure.New(failure.Preflight, err, remedy)
}
