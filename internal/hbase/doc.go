// Package hbase is the mover's client of HBase: what gohbase offers, with its
// traps closed. The sink, verification and the ledger use it.
//
//   - Nothing waits for ever. gohbase retries until its context ends, so every
//     call here has a deadline of its own; what gohbase complained about
//     meanwhile is part of the error.
//   - Errors are classified here, once (see errors.go), and nowhere by their text above.
//   - Dial checks ZooKeeper, the znode and the names of the region servers
//     before gohbase could hang on them.
//   - A batch of puts is sent as one request a region server, at once, every
//     put with the deadline of the whole; after a deadline the puts that are in
//     doubt are sent anew by objects of their own, since a late answer
//     may still arrive for the old ones.
//   - A scanner's next request is never repeated: had the server answered and
//     the answer been lost, repeating it would skip rows. The scan begins anew
//     after the last row it has seen.
package hbase
