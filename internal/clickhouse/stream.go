package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Query is one bounded query whose result is read as a stream.
type Query struct {
	// ID is the query_id on the server.
	ID string
	// SQL is a SELECT without SETTINGS and FORMAT.
	SQL string
	// CountLast says that the last column is a UInt64 which is not delivered but
	// added up in [Stream.Counted].
	CountLast bool
	// Gentle runs the query with half the threads, and lets it spill at a
	// quarter of the job's limit.
	Gentle bool
	// ReadAtMost, if not 0, lets each server read about so many rows and no more,
	// without an error: the result is then that of a sample.
	ReadAtMost uint64
	// Progress, if set, is told the rows and bytes that the servers have read
	// since its last call. It is called from another goroutine.
	Progress func(rows, bytes uint64)
}

// A Stream is the result of a query. It is used by one goroutine and must be
// closed.
type Stream struct {
	// Columns are the delivered columns in order.
	Columns []row.Column
	// Counted is the sum of the last column over the rows so far, see
	// [Query.CountLast].
	Counted uint64

	count *uint64
	node  *Node
	id    string
	ctx   context.Context
	stop  context.CancelFunc
	rows  driver.Rows
	cells []cell
	dest  []any
	got   uint64
	ended bool
	proof proof
}

// Stream starts a query. The job's limits are in force, and throw.
func (n *Node) Stream(ctx context.Context, q Query) (*Stream, error) {
	s := &Stream{node: n, id: q.ID}
	s.ctx, s.stop = untimed(ctx, n.limits.MaxExecutionTime+drain)
	rows, err := n.start(s.ctx, n.settingsOf(q), q, &s.proof)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.rows = rows
	columns, err := s.headers(q)
	if err == nil {
		err = s.bindColumns(columns, q.CountLast)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// A header is a column of a result's, as the server names it and its type.
type header struct{ name, typ string }

// headers gives the columns of the result. Over HTTP an empty result comes
// without them, and the server must be asked.
func (s *Stream) headers(q Query) ([]header, error) {
	var columns []header
	for _, c := range s.rows.ColumnTypes() {
		columns = append(columns, header{c.Name(), c.DatabaseTypeName()})
	}
	if len(columns) > 0 {
		return columns, nil
	}
	if err := s.node.proven(&s.proof, 0); err != nil {
		return nil, err // it has rows, which do not come
	}
	return s.node.describe(s.ctx, q.SQL)
}

// describe asks for the columns of a query.
func (n *Node) describe(ctx context.Context, sql string) ([]header, error) {
	p := &proof{}
	rows, err := n.start(ctx, n.settings, Query{SQL: "DESCRIBE TABLE (" + sql + ")"}, p)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var columns []header
	var name, typ string
	dest := []any{&name, &typ}
	for i, c := range rows.ColumnTypes() {
		if i >= 2 { // what follows differs between versions
			dest = append(dest, reflect.New(c.ScanType()).Interface())
		}
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return nil, n.refuse(err)
		}
		columns = append(columns, header{name, typ})
	}
	if err := rows.Err(); err != nil {
		return nil, n.classify(ctx, err)
	}
	if len(columns) == 0 {
		return nil, failure.Errorf(failure.Transient, "ClickHouse %s: the description of a result came without columns", n.Addr)
	}
	return columns, n.proven(p, uint64(len(columns)))
}

func (s *Stream) bindColumns(columns []header, countLast bool) error {
	if countLast {
		s.count = new(uint64)
		columns = columns[:len(columns)-1]
	}
	for _, c := range columns {
		t, err := row.ParseType(c.typ)
		if err != nil {
			return failure.New(failure.Source, fmt.Errorf("column %s: %w", c.name, err), "")
		}
		cell, err := newCell(t)
		if err != nil {
			return failure.New(failure.Source, fmt.Errorf("column %s: %w", c.name, err), "")
		}
		s.Columns = append(s.Columns, row.Column{Name: c.name, Type: t})
		s.cells = append(s.cells, cell)
		s.dest = append(s.dest, cell.dest)
	}
	if countLast {
		s.dest = append(s.dest, s.count)
	}
	return nil
}

// Next adds rows to b until it holds limit rows or the stream ends. It returns
// true while there may be more. False with a nil error is the proven end: the
// server said that it has sent everything, and as many rows arrived as it
// counted. b stays the caller's.
func (s *Stream) Next(b *row.Batch, limit int) (bool, error) {
	for b.Len() < limit {
		if !s.rows.Next() {
			return false, s.end()
		}
		if err := s.rows.Scan(s.dest...); err != nil {
			return false, s.node.refuse(err)
		}
		for i := range s.cells {
			b.Values = append(b.Values, s.cells[i].read())
		}
		if s.count != nil {
			s.Counted += *s.count
		}
		s.got++
	}
	return true, nil
}

// end checks that the stream came to its end and was not cut.
func (s *Stream) end() error {
	s.ended = true
	if err := cmp.Or(s.rows.Err(), s.ctx.Err()); err != nil {
		return s.node.classify(s.ctx, s.node.leave(s.ctx, s.id, err))
	}
	return s.node.proven(&s.proof, s.got)
}

// proven tells whether as many rows arrived as the server says it has sent.
func (n *Node) proven(p *proof, got uint64) error {
	sent := p.rows.Load()
	if sent == nil {
		return failure.Errorf(failure.Transient, "ClickHouse %s: the result ended without the server's row count after %d rows", n.Addr, got)
	}
	if *sent != got {
		return failure.Errorf(failure.Transient, "ClickHouse %s: the server sent %d rows and %d arrived", n.Addr, *sent, got)
	}
	return nil
}

// Close ends the query; one that still runs is cancelled.
func (s *Stream) Close() error {
	s.stop() // first: closing drains a stream that was not cancelled
	if !s.ended && s.id != "" {
		s.node.afterCancel(context.WithoutCancel(s.ctx), s.id)
	}
	return s.rows.Close()
}
