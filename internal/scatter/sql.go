package scatter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ck2hbase/ck2hbase/internal/job"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

// A hashFunction is a hash function of ClickHouse that gives a UInt64.
type hashFunction string

// The run's slices and its verification hash differently, so that a fault in
// one slicing cannot hide in the other.
const (
	cityHash hashFunction = "cityHash64"
	sipHash  hashFunction = "sipHash64"
)

// Alias prefixes: unlikely enough not to shadow a column of the user's table.
const (
	dimensionAlias = "_ck2hbase_d"
	metricAlias    = "_ck2hbase_m"
	countAlias     = "_ck2hbase_n"
)

// A key is what slices are cut by: one or several dimensions of a level, as
// expressions over the source's columns.
type key []keyPart

type keyPart struct {
	name, expr string
	typ        row.Type
}

// hash gives an expression that is equal for values that GROUP BY puts into one
// group, and never NULL.
func (k key) hash(h hashFunction) string {
	if len(k) == 1 {
		return notNull(h, k[0].expr, k[0].typ)
	}
	return k.mix(h)
}

// mix is as hash, and another function of the values where there is one dimension.
func (k key) mix(h hashFunction) string {
	hashes := make([]string, len(k))
	for i, part := range k {
		hashes[i] = notNull(h, part.expr, part.typ)
	}
	return string(h) + "(" + strings.Join(hashes, ", ") + ")"
}

// bucket gives the number of the value's bucket among n.
func (k key) bucket(h hashFunction, n int) string { return fmt.Sprintf("%s %% %d", k.hash(h), n) }

// names lists the dimensions.
func (k key) names() string {
	names := make([]string, len(k))
	for i, part := range k {
		names[i] = part.name
	}
	return strings.Join(names, ", ")
}

// notNull hashes NULL to 0: the hash of NULL is NULL and would fall out of
// every slice.
func notNull(h hashFunction, expr string, t row.Type) string {
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
	table string          // quoted
}

// NewBuilder renders the job's filter for a unit. dims are the level's
// dimensions as they are to be asked for.
func NewBuilder(j *job.Job, u job.Unit, dims []job.Dimension) (*Builder, error) {
	where, err := job.Render(j.Source.Where, u)
	if err != nil {
		return nil, err
	}
	return &Builder{job: j, unit: u, where: where, dims: dims, table: table(j.Source.Table)}, nil
}

// on gives a builder that reads the table of one shard on a node of it; shard 0
// is the source table.
func (b *Builder) on(shard uint32, up *UnitPlan) *Builder {
	if shard == 0 {
		return b
	}
	return b.reading(up.Local)
}

// reading gives a builder that reads another table than the source.
func (b *Builder) reading(name string) *Builder {
	other := *b
	other.table = table(name)
	return &other
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
	sql := " FROM " + b.table
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
	if b.job.SQL != "" {
		return b.rawGroup(condition)
	}
	selected, grouped := b.groupColumns()
	for i, m := range b.job.Metrics {
		selected = append(selected, fmt.Sprintf("(%s) AS %s%d", m.Expr, metricAlias, i))
	}
	selected = append(selected, "count() AS "+countAlias)
	return "SELECT " + strings.Join(selected, ", ") + b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ") + havingRows
}

// rawGroup selects what is wanted from the job's own query, in which a condition
// stands in place of {slice}. How many source rows are in a group is not known.
func (b *Builder) rawGroup(condition string) string {
	var selected []string
	for i, d := range b.dims {
		selected = append(selected, fmt.Sprintf("(%s) AS %s%d", d.Name, dimensionAlias, i))
	}
	for i, m := range b.job.Metrics {
		selected = append(selected, fmt.Sprintf("(%s) AS %s%d", m.Expr, metricAlias, i))
	}
	selected = append(selected, "toUInt64(1) AS "+countAlias)
	if condition == "" {
		condition = "1"
	}
	return "SELECT " + strings.Join(selected, ", ") + " FROM (" + job.RenderQuery(b.job.SQL, b.unit, condition) + ")"
}

// havingRows drops what old servers make of constant dimensions and no rows: a group.
const havingRows = " HAVING count() > 0"

// rows counts the source rows under a condition.
func (b *Builder) rows(condition string) string { return "SELECT count()" + b.from(condition) }

// groups lists the groups under a condition, without metrics.
func (b *Builder) groups(condition string) string {
	selected, grouped := b.groupColumns()
	return "SELECT " + strings.Join(selected, ", ") + b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ")
}

// twoGroups counts the groups under a condition, two at most, and names one.
func (b *Builder) twoGroups(condition string) string {
	_, grouped := b.groupColumns()
	groups := b.groups(condition)
	if b.job.SQL != "" {
		groups = b.rawGroup(condition)
	}
	texts := make([]string, len(grouped))
	for i, alias := range grouped {
		texts[i] = "'" + b.dims[i].Name + " = ', ifNull(toString(" + alias + "), 'NULL')"
	}
	return "SELECT count(), any(concat(" + strings.Join(texts, ", ', ', ") + ", '')) FROM (" + groups + " LIMIT 2)"
}

// Count is the number of groups, and of the source rows in them, under a condition.
func (b *Builder) Count(condition string) string {
	if b.job.SQL != "" {
		return "SELECT count(), toUInt64(0) FROM (" + b.rawGroup(condition) + ")"
	}
	selected, grouped := b.groupColumns()
	selected = append(selected, "count() AS "+countAlias)
	return "SELECT count(), sum(" + countAlias + ") FROM (SELECT " + strings.Join(selected, ", ") +
		b.from(condition) + " GROUP BY " + strings.Join(grouped, ", ") + havingRows + ")"
}

// sizes estimates the distinct values of each dimension and the groups of each
// level.
// levels are all of the job: uniq takes few types on old servers, so values are
// told apart by a hash that depends on the type. The last column counts the rows.
func (b *Builder) sizes(levels map[int]level) string {
	var selected []string
	uniq := func(expr string) {
		// On old servers uniq of nothing but NULL is NULL.
		selected = append(selected, "toUInt64(ifNull(uniq("+expr+"), 0))")
	}
	parts := make([]keyPart, len(b.job.Dimensions))
	for i, l := range b.job.Levels {
		for k, part := range keyOf(levels[i].dims, levels[i].columns) {
			parts[l.Dimensions[k]] = part
		}
	}
	for _, part := range parts {
		uniq(notNull(cityHash, part.expr, part.typ))
	}
	for i := range b.job.Levels {
		uniq(keyOf(levels[i].dims, levels[i].columns).mix(cityHash))
	}
	return "SELECT " + strings.Join(append(selected, "count()"), ", ") + b.from()
}

// weights counts the rows of each bucket of a key.
func (b *Builder) weights(k key) string {
	return "SELECT toUInt32(" + k.bucket(cityHash, Buckets) + ") AS " + countAlias + ", count()" +
		b.from() + " GROUP BY " + countAlias
}

// evenParts counts the rows of n parts with equally many buckets.
func (b *Builder) evenParts(k key, n int) string {
	if n == 1 {
		return "SELECT toUInt32(0), count()" + b.from()
	}
	return fmt.Sprintf("SELECT toUInt32(intDiv((%s) * %d, %d)) AS %s, count()%s GROUP BY %s",
		k.bucket(cityHash, Buckets), n, Buckets, countAlias, b.from(), countAlias)
}

// sampleHashes lists the hashes of one in so many values of a key.
func (b *Builder) sampleHashes(k key, oneIn uint64, limit int) string {
	return fmt.Sprintf("SELECT toUInt64(%s) AS %s%s GROUP BY %s LIMIT %d",
		k.mix(cityHash), countAlias, b.from(fmt.Sprintf("%s %% %d = 0", k.mix(cityHash), oneIn)), countAlias, limit)
}

// sampleCosts lists the values of a dimension in order, as texts, with what each
// costs: a random sample of one in so many rows, and one in so many groups, by
// hash, with the cost that a row and a group in the samples stand for.
//
// 18.16 does not unite a constant column with one that is none.
func (b *Builder) sampleCosts(k keyPart, text string, group key, oneRow, oneGroup, rowCost, groupCost uint64) string {
	alias := dimensionAlias + "0"
	selected, grouped := b.groupColumns()
	rows := fmt.Sprintf("SELECT (%s) AS %s, materialize(toUInt64(%d)) AS %s%s", k.expr, alias, rowCost, countAlias, b.from(fmt.Sprintf("rand() %% %d = 0", oneRow)))
	groups := fmt.Sprintf("SELECT %s AS %s, materialize(toUInt64(%d)) AS %s FROM (SELECT %s%s GROUP BY %s)", grouped[slices.Index(group, k)], alias, groupCost, countAlias,
		strings.Join(selected, ", "), b.from(fmt.Sprintf("%s %% %d = 0", group.mix(cityHash), oneGroup)), strings.Join(grouped, ", "))
	return fmt.Sprintf("SELECT %s, sum(%s) FROM (%s UNION ALL %s) GROUP BY %s ORDER BY %s",
		fmt.Sprintf(text, alias), countAlias, rows, groups, alias, alias)
}

// between counts the rows between bounds, in ascending order, of a key.
func (b *Builder) between(k keyPart, bounds []string) string {
	above := make([]string, len(bounds))
	for i, bound := range bounds {
		above[i] = "toUInt32((" + k.expr + ") >= " + bound + ")"
	}
	return "SELECT toUInt32(" + strings.Join(above, " + ") + ") AS " + countAlias + ", count()" + b.from() + " GROUP BY " + countAlias
}

// listed leaves NULL out, which is in no list.
func (k keyPart) listed() string {
	if k.typ.Nullable {
		return "(" + k.expr + ") IS NOT NULL"
	}
	return ""
}

// values counts the rows of each value of a key, as texts, up to a number of values.
func (b *Builder) values(k keyPart, text string, limit int) string {
	alias := dimensionAlias + "0"
	return fmt.Sprintf("SELECT %s, %s FROM (SELECT (%s) AS %s, count() AS %s%s GROUP BY %s LIMIT %d)",
		fmt.Sprintf(text, alias), countAlias, k.expr, alias, countAlias, b.from(k.listed()), alias, limit)
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
	if b.job.SQL != "" {
		all = append(all, part{"sql", "SELECT count() FROM (" + job.RenderQuery(b.job.SQL, b.unit, "0") + ")"})
	}
	for _, m := range b.job.Metrics {
		if b.job.SQL != "" {
			all = append(all, part{"metrics." + m.Name, "SELECT (" + m.Expr + ") FROM (" + job.RenderQuery(b.job.SQL, b.unit, "0") + ")"})
			continue
		}
		all = append(all, part{"metrics." + m.Name, "SELECT (" + m.Expr + ") AS " + metricAlias + ", count() AS " + countAlias + from + " WHERE 0 GROUP BY 1 = 1"})
	}
	return all
}

// CheckCondition selects the k-th of n parts of the unit's groups, by another
// hash than the run's. Part k of n is parts k and k+n of 2n.
func (up *UnitPlan) CheckCondition(k, n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf("%s %% %d = %d", up.group().mix(sipHash), n, k)
}
