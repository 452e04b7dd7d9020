// Package failure classifies errors once, where they arise, by what the caller
// (in the end a scheduler) should do about them. Everything above reads the
// class and never the text.
package failure

import (
	"context"
	"errors"
	"fmt"
)

// Class is what an error means for the run. Its number is the exit code.
type Class int

// The classes, in the order of the documented exit codes.
const (
	// Bug is an error nobody classified.
	Bug Class = 1
	// Usage is a wrong command line or job file.
	Usage Class = 2
	// Preflight is a problem found before anything was written.
	Preflight Class = 3
	// Source is a permanent error of ClickHouse or of its data.
	Source Class = 4
	// Sink is a permanent error of the receiver.
	Sink Class = 5
	// Mismatch is a difference found by verification.
	Mismatch Class = 6
	// Locked says that another run holds the lease.
	Locked Class = 7
	// Transient is an interruption, or a fault that outlasted its retries:
	// the same command may succeed later.
	Transient Class = 8
)

// An Error is a classified error with a remedy for whoever reads it.
type Error struct {
	Class Class
	// Remedy is what to do, in a sentence; may be empty.
	Remedy string
	Err    error
}

// Error gives the cause alone; see [Remedy].
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New classifies err; nil stays nil. The remedy is a sentence or empty.
func New(class Class, err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &Error{Class: class, Err: err, Remedy: remedy}
}

// Errorf makes a classified error without a remedy; %w works.
func Errorf(class Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
}

// ClassOf is the class of the outermost classified error in err's chain. An
// interruption by a cancelled context is Transient, anything else unclassified
// is a Bug. ClassOf(nil) is 0.
func ClassOf(err error) Class {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Transient
	}
	return Bug
}

// Remedy is the first remedy in err's chain, or empty.
func Remedy(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Remedy != "" {
			return e.Remedy
		}
		err = e.Err
	}
	return ""
}

// IsTransient tells whether a new attempt is of use.
func IsTransient(err error) bool { return ClassOf(err) == Transient }
