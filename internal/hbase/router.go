package hbase

import (
	"bytes"
	"context"
	"sort"
	"sync/atomic"
)

// A router knows which server has which keys of a table. What it knows may be
// old: a server that does not have a region any more says so, and the list is
// read anew. It is safe for concurrent use.
type router struct {
	client *Client
	table  string
	known  atomic.Pointer[routes]
	lock   chan struct{} // holds a token while nobody reads the list
}

// routes is a table's regions at one time, in the order of their keys.
type routes struct{ regions []Region }

func newRouter(c *Client, table string) *router {
	r := &router{client: c, table: table, lock: make(chan struct{}, 1)}
	r.lock <- struct{}{}
	return r
}

// get gives the routes, read anew if they are those that turned out stale; nil
// is stale if nothing is known.
func (r *router) get(ctx context.Context, stale *routes) (*routes, error) {
	if now := r.known.Load(); now != nil && now != stale {
		return now, nil
	}
	select {
	case <-r.lock:
		defer func() { r.lock <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if now := r.known.Load(); now != nil && now != stale {
		return now, nil // another goroutine has read it meanwhile
	}
	regions, err := r.client.Regions(ctx, r.table)
	if err != nil {
		return nil, err
	}
	now := &routes{regions}
	r.known.Store(now)
	return now, nil
}

// find gives the index of the region that holds a key.
func (r *routes) find(key []byte) int {
	// The first region has no start and holds what is before the second's.
	return sort.Search(len(r.regions)-1, func(i int) bool { return bytes.Compare(key, r.regions[i+1].Start) < 0 })
}

// share gives each server's part of the pending rows. Rows of regions without
// a server are in none; homeless is one such region.
func (r *routes) share(p *Puts) (parts []part, homeless *Region) {
	n := 0
	at := map[string]int{} // index in parts by server
	for from := 0; from < len(p.pending); {
		region := &r.regions[r.find(p.rowKey(p.pending[from]))]
		to := from + 1
		for to < len(p.pending) && (len(region.End) == 0 || bytes.Compare(p.rowKey(p.pending[to]), region.End) < 0) {
			to++
		}
		s := span{region.Name, from, to}
		from = to
		if region.Server == "" {
			homeless = region
			continue
		}
		i, known := at[region.Server]
		if !known {
			i = n
			at[region.Server] = i
			if n++; n > len(p.parts) {
				p.parts = append(p.parts, part{})
			}
			p.parts[i].reset(region.Server)
		}
		p.parts[i].spans = append(p.parts[i].spans, s)
	}
	return p.parts[:n], homeless
}
