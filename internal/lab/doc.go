// Package lab starts real servers without containers, for the demo, the tests
// and the benchmarks, and breaks them on purpose: ClickHouse 26.9 and 18.16 as
// clusters, HBase 2.6 in one JVM or in several, and toxiproxy in between.
//
// # Shared and private servers
//
// [Shared] gives a test the servers of the whole `go test` run: those of the
// process that CK2HBASE_LAB points to, or else servers that are started on
// first use and live as long as the test process. Tests use databases and
// tables of their own there, and cannot stop or pause anything.
// [StartClickHouse] and [StartHBase] start servers that belong to the caller,
// who may kill, pause and restart them and must call Stop.
//
// # What a start promises
//
// Every server listens on 127.0.0.1 only, on ports that no other lab of this
// user takes, and keeps its files in a temporary directory that Stop removes.
// No server outlives the process that started it, not even after SIGKILL: the
// kernel sends them SIGKILL when their owner dies (Linux only), and a small
// watcher then removes the directory.
//
// # Downloads
//
// The server binaries are pinned by version and SHA-256 and kept in .cache at
// the root of the repository, or in $CK2HBASE_CACHE. See [Prepare].
package lab
