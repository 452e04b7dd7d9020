package spool

import "syscall"

// InMemory tells whether the files of a directory take memory instead of disk.
func InMemory(dir string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return false
	}
	kind := uint32(fs.Type) // signed on some machines
	return kind == tmpfs || kind == ramfs
}
