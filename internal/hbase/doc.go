// Package hbase is the mover's client of HBase: what gohbase offers, with its
// traps closed. The sink, verification and the ledger use it.
//
//   - Nothing waits for ever. gohbase retries until its context ends, so every
//     call here has a deadline of its own; what gohbase complained about
//     meanwhile is part of the error.
//   - Errors are classified here, once (see errors.go), and nowhere by their text above.
//   - Dial checks ZooKeeper, the znode and the names of the region servers
//     before gohbase could hang on them.
//   - A batch of puts is sent as one request a region server, over connections of
//     its own, with a deadline each. A row is acknowledged only if the server's
//     answer says that it was put; everything else is sent again, or ends the run
//     where that is of no use (see verdict.go). What gohbase's own batches leave
//     out (an end to retries, exceptions it does not know, calls without an answer)
//     does not arise.
//   - A scanner's next request is never repeated: had the server answered and
//     the answer been lost, repeating it would skip rows. The scan begins anew
//     after the last row it has seen.
package hbase
