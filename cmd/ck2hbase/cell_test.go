package main

import (
	"encoding/binary"
	"strconv"
)

// long reads a cell as HBase's Bytes.toLong does.
func long(cell string) string {
	if len(cell) != 8 {
		return "not a long: " + strconv.Quote(cell)
	}
	return strconv.FormatInt(int64(binary.BigEndian.Uint64([]byte(cell))), 10)
}
