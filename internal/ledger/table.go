package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// A TableUse says that a job writes to a table, and how its keys begin.
type TableUse struct {
	Job string `json:"job"`
	// RowKey is the template of the keys; SaltDigits is the width of {salt}.
	RowKey     string `json:"row_key"`
	SaltDigits int    `json:"salt_digits"`
}

// UseTable records that a job writes to a table, and returns the other jobs
// whose keys there may be the same as its own. HBase keeps few versions of a
// cell: where two jobs wrote one key, the runs of one would push the published
// cells of the other out of the table.
func (l *Ledger) UseTable(ctx context.Context, table string, use TableUse) ([]TableUse, error) {
	clashes, err := l.clashes(ctx, table, use)
	if err != nil || len(clashes) > 0 {
		return clashes, err // a job that is refused stands in nobody's way
	}
	if err := l.replace(ctx, key("table", table, use.Job), use); err != nil {
		return nil, err
	}
	// Of two new jobs at once each sees the other now.
	return l.clashes(ctx, table, use)
}

func (l *Ledger) clashes(ctx context.Context, table string, use TableUse) ([]TableUse, error) {
	var clashes []TableUse
	err := l.store.Scan(ctx, key("table", table)+"/", func(k string, value []byte) error {
		var other TableUse
		if err := json.Unmarshal(value, &other); err != nil {
			return broken(k, err)
		}
		if other.Job != use.Job && !disjoint(use, other) {
			clashes = append(clashes, other)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the jobs that write to table %s: %w", table, err)
	}
	return clashes, nil
}

// UseRow is the ledger's row that says that a job writes to a table.
func UseRow(table, job string) string { return key("table", table, job) }

// disjoint tells whether the templates begin so that no key of one is a key of
// the other: at the same place each has a literal, and neither literal begins the other.
func disjoint(a, b TableUse) bool {
	aWidth, aText := a.lead()
	bWidth, bText := b.lead()
	return aWidth == bWidth && !strings.HasPrefix(aText, bText) && !strings.HasPrefix(bText, aText)
}

// lead is the first literal of a template, and the width of the salt before it.
func (u TableUse) lead() (width int, literal string) {
	rest := u.RowKey
	if after, salted := strings.CutPrefix(rest, "{salt}"); salted {
		width, rest = u.SaltDigits, after
	}
	// An escape ends what is certain.
	if end := strings.IndexAny(rest, `{}\`); end >= 0 {
		rest = rest[:end]
	}
	return width, rest
}
