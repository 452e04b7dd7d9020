//go:build !linux

package spool

// InMemory tells whether the files of a directory take memory instead of disk.
func InMemory(string) bool { return false }
