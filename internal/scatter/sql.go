package scatter

import (
	"fmt"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// Buckets is the number of hash buckets that the values of the slicing
// dimension are counted in: enough for slices of equal weight, and so few that
// 10⁹ values cost the mover no more memory than 10⁶.
const Buckets = 65536

// A Hash is a hash function of ClickHouse that gives a UInt64.
type Hash string

// The run's slices and its verification hash differently, so that a fault in
// one slicing cannot hide in the other.
const (
	CityHash Hash = "cityHash64"
	SipHash  Hash = "sipHash64"
)

// Alias prefixes: unlikely enough not to shadow a column of the user's table.
const (
	dimensionAlias = "_ck2hbase_d"
	metricAlias    = "_ck2hbase_m"
	countAlias     = "_ck2hbase_n"
)

// modulo gives an expression from 0 to n-1 that is equal for values that GROUP
// BY puts into one group, and never NULL: the hash of NULL is NULL and would
// fall out of every slice, so NULL hashes to 0.
func modulo(h Hash, expr string, t row.Type, n int) string {
	return fmt.Sprintf("%s %% %d", notNull(h, expr, t), n)
}

func notNull(h Hash, expr string, t row.Type) string {
	return fmt.Sprintf("ifNull(%s(%s), 0)", h, hashable(expr, t))
}

// hashable gives the form of an expression that every supported server can
// hash: 18.16 refuses Decimal, UUID and wide integers, so they are hashed as
// text. Floats are hashed as text too, after adding 0: then both zeros, and NaNs
// of any payload, hash alike, whether or not the server groups them together.
func hashable(expr string, t row.Type) string {
	switch t.Kind {
	case row.UInt, row.Int, row.Bool:
		return "(" + expr + ")"
	case row.Date, row.String:
		switch t.Base {
		case "UUID", "IPv4", "IPv6", "Date32":
		default:
			return "(" + expr + ")"
		}
	case row.DateTime:
		// Not as text: the shards' time zones may differ.
		return "(" + expr + ")"
	case row.Float:
		return "toString((" + expr + ") + 0)"
	}
	return "toString(" + expr + ")"
}

// table writes db.table with both parts quoted.
func table(name string) string {
	parts := strings.SplitN(name, ".", 2)
	for i, p := range parts {
		parts[i] = "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(p) + "`"
	}
	return strings.Join(parts, ".")
}

// A Builder writes the queries of one unit.
type Builder struct {
	job   *job.Job
	unit  job.Unit
	where string
	dims  []job.Dimension // of the level, in its order
}

// NewBuilder renders the job's filter for a unit. dims are the level's
// dimensions as they are to be asked for.
func NewBuilder(j *job.Job, u job.Unit, dims []job.Dimension) (*Builder, error) {
	where, err := job.Render(j.Source.Where, u)
	if err != nil {
		return nil, err
	}
	return &Builder{job: j, unit: u, where: where, dims: dims}, nil
}

// levelDimensions are a level's dimensions as the job file has them.
func levelDimensions(j *job.Job, level int) []job.Dimension {
	dims := make([]job.Dimension, len(j.Levels[level].Dimensions))
	for i, d := range j.Levels[level].Dimensions {
		dims[i] = j.Dimensions[d]
	}
	return dims
}

// withoutDictionary casts a LowCardinality dimension to the type within. 18.16,
// where the type was an experiment, loses groups of LowCardinality(Nullable)
// when it merges the answers of shards.
func withoutDictionary(d job.Dimension, t row.Type) job.Dimension {
	inner := t.Base
	if t.Nullable {
		inner = "Nullable(" + inner + ")"
	}
	d.Expr = "CAST((" + d.Expr + ") AS " + inner + ")"
	return d
}

// from writes FROM and WHERE with the job's filter and more conditions.
func (b *Builder) from(conditions ...string) string {
	var all []string
	if b.where != "" {
		all = append(all, "("+b.where+")")
	}
	for _, c := range conditions {
		if c != "" {
			all = append(all, "("+c+")")
		}
	}
	sql := " FROM " + table(b.job.Source.Table)
	if len(all) > 0 {
		sql += " WHERE " + strings.Join(all, " AND ")
	}
	return sql
}

func (b *Builder) groupColumns() (selected, grouped []string) {
	for i, d := range b.dims {
		alias := fmt.Sprintf("%s%d", dimensionAlias, i)
		selected = append(selected, fmt.Sprintf("(%s) AS %s", d.Expr, alias))
		grouped = append(grouped, alias)
	}
	return selected, grouped
}

// Group is the aggregation under a condition: the level's dimensions, the
// metrics, and the number of source rows of each group, in this order.
func (b *Builder) Group(condition string) string {
	selected, grouped := b.groupColumns()
	for i, m := range b.job.Metrics {
		selected = append(selected, fmt.Sprintf("(%s) AS %s%d", m.Expr, metricAlias, i))
	}
	selected = append(selected, "count() AS "+countAlias)
	return "SELECT " + strings.Join(selected, ", ") + b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ") + havingRows
}

// havingRows drops what old servers make of constant dimensions and no rows: a group.
const havingRows = " HAVING count() > 0"

// rows counts the source rows under a condition.
func (b *Builder) rows(condition string) string { return "SELECT count()" + b.from(condition) }

// twoGroups counts the groups under a condition, two at most, and names one.
func (b *Builder) twoGroups(condition string) string {
	selected, grouped := b.groupColumns()
	texts := make([]string, len(grouped))
	for i, alias := range grouped {
		texts[i] = "'" + b.dims[i].Name + " = ', ifNull(toString(" + alias + "), 'NULL')"
	}
	return "SELECT count(), any(concat(" + strings.Join(texts, ", ', ', ") + ", '')) FROM (SELECT " + strings.Join(selected, ", ") +
		b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ") + " LIMIT 2)"
}

// Count is the number of groups, and of the source rows in them, under a condition.
func (b *Builder) Count(condition string) string {
	selected, grouped := b.groupColumns()
	selected = append(selected, "count() AS "+countAlias)
	return "SELECT count(), sum(" + countAlias + ") FROM (SELECT " + strings.Join(selected, ", ") +
		b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ") + havingRows + ")"
}

// sizes estimates the distinct values of each dimension and the groups of each
// level.
// It knows the levels' dimensions with their types: uniq takes few Nullable
// arguments, so groups are told apart by a hash.
func (b *Builder) sizes(levels map[int]level) string {
	var selected []string
	uniq := func(expr string) {
		// On old servers uniq of nothing but NULL is NULL.
		selected = append(selected, "toUInt64(ifNull(uniq("+expr+"), 0))")
	}
	for _, d := range b.job.Dimensions {
		uniq("(" + d.Expr + ")")
	}
	for i := range b.job.Levels {
		var hashes []string
		for k, d := range levels[i].dims {
			hashes = append(hashes, notNull(CityHash, d.Expr, levels[i].columns[k].Type))
		}
		uniq("cityHash64(" + strings.Join(hashes, ", ") + ")")
	}
	return "SELECT " + strings.Join(selected, ", ") + b.from()
}

// weights counts the rows of each bucket of a dimension.
func (b *Builder) weights(d job.Dimension, t row.Type) string {
	return "SELECT toUInt32(" + modulo(CityHash, d.Expr, t, Buckets) + ") AS " + countAlias + ", count()" +
		b.from() + " GROUP BY " + countAlias
}

// A part is one expression of the job file in a query of its own that reads no row.
type part struct{ path, sql string }

// parts lists the expressions of the unit in the order in which an error in
// one of them is best reported.
func (b *Builder) parts() []part {
	from := " FROM " + table(b.job.Source.Table)
	all := []part{{"source.table", "SELECT count()" + from + " WHERE 0"}}
	if b.where != "" {
		all = append(all, part{"source.where", "SELECT count()" + from + " WHERE (" + b.where + ") AND 0"})
	}
	for i, d := range b.job.Levels[b.unit.Level].Dimensions {
		all = append(all, part{fmt.Sprintf("dimensions[%d]", d), "SELECT (" + b.dims[i].Expr + ") AS " + dimensionAlias + from + " WHERE 0 GROUP BY " + dimensionAlias})
	}
	for _, m := range b.job.Metrics {
		all = append(all, part{"metrics." + m.Name, "SELECT (" + m.Expr + ") AS " + metricAlias + ", count() AS " + countAlias + from + " WHERE 0 GROUP BY 1 = 1"})
	}
	return all
}

// sliceCondition selects the buckets lo to hi of a dimension; all of them need
// no condition.
func sliceCondition(d job.Dimension, t row.Type, lo, hi int) string {
	if lo == 0 && hi == Buckets-1 {
		return ""
	}
	return fmt.Sprintf("%s BETWEEN %d AND %d", modulo(CityHash, d.Expr, t, Buckets), lo, hi)
}

// CheckCondition selects the k-th of n parts by another hash than the run's.
func CheckCondition(d job.Dimension, t row.Type, k, n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf("%s = %d", modulo(SipHash, d.Expr, t, n), k)
}
