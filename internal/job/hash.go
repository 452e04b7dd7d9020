package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash is a stable SHA-256, in hex, over all that changes the rows a run
// leaves in HBase: source cluster, table, filter, dimensions, metrics, periods,
// time zone, levels, and the table's keys and cells. Addresses, logins, limits,
// slices, batches and how a table is created do not change it.
func (j *Job) Hash() string {
	h := j.HBase
	canonical, err := json.Marshal(struct {
		Version                int
		Cluster, Source, Where string
		SQL                    string `json:",omitempty"`
		Dimensions             []Dimension
		Metrics                []Metric
		Periods                []Period
		Timezone               string
		Levels                 []Level
		Table, Family, RowKey  string
		Salt                   *Salt
		Columns                []string
		Pack                   string `json:",omitempty"`
		File                   *File  `json:",omitempty"`
	}{
		1, j.Source.Cluster, j.Source.Table, j.Source.Where, j.SQL, j.Dimensions, j.Metrics, j.Periods,
		j.Timezone.String(), j.Levels, h.Table, h.Family, h.RowKey, h.Salt, h.Columns, h.Pack, j.File,
	})
	if err != nil {
		// Plain texts and numbers: it cannot fail. A constant would let two
		// different jobs pass for one, so the error itself goes in.
		canonical = []byte(err.Error())
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
