package rowkey

import (
	"time"

	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A Text writes the text form of one type's values, the one of keys and text cells.
type Text struct{ f formatter }

// NewText makes a Text. zone is that of the job, nil is UTC.
func NewText(t row.Type, zone *time.Location) Text { return Text{newFormatter(t, zone)} }

// Append appends the text of a value that is not NULL.
func (t Text) Append(dst []byte, v *row.Value) []byte { return t.f.text(dst, v) }
