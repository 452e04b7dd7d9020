//go:build !linux && !darwin

package spool

// Free is the number of bytes that this user may still write in a directory.
// ok is false where the system does not tell, as here.
func Free(string) (bytes int64, ok bool, err error) { return 0, false, nil }
