package rowkey

import (
	"errors"
	"fmt"

	"github.com/ck2hbase/ck2hbase/internal/failure"
)

// usage is an error of the job file.
func usage(remedy, format string, args ...any) error {
	return failure.New(failure.Usage, fmt.Errorf(format, args...), remedy)
}

// badValue is an error of a value that the job cannot take.
func badValue(remedy, format string, args ...any) error {
	return failure.New(failure.Source, fmt.Errorf(format, args...), remedy)
}

// templateError points at a column of the template; 0 points at none.
func templateError(template string, column int, what, remedy string) error {
	where := fmt.Sprintf("row_key %q", template)
	if column > 0 {
		where += fmt.Sprintf(", column %d", column)
	}
	return usage(remedy, "%s: %s", where, what)
}

// errNotAKey is the cause of every failed Decode.
var errNotAKey = errors.New("not a key of this template")
