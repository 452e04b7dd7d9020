package clickhouse

// Kind is what an error of a query means for the slice that ran it.
type Kind int

// The kinds of query errors.
const (
	// KindPermanent will come again on every node: syntax, unknown names,
	// authorisation, and every code that is not in the table.
	KindPermanent Kind = iota
	// KindLimit is one of the limits that the mover itself has set.
	KindLimit
	// KindElsewhere is a fault of a node or of the way to it.
	KindElsewhere
	// KindLater is a server that has too much to do.
	KindLater
	// KindCancelled is our own cancellation: the context of the query has ended.
	KindCancelled
)

type codeInfo struct {
	kind   Kind
	remedy string
}

const (
	remedyLimit  = "raise the limit, in the job's limits or in the user's profile, or cut the work finer with scatter.slices"
	remedyLogin  = "check source.username and source.password (or password_file)"
	remedyNames  = "check source.table, the dimensions and the metrics against the columns of the table"
	remedyGrants = "grant SELECT on the source table and on system.clusters, system.tables and system.settings to the user"
)

// Codes that are treated on their own.
const (
	codeUnknownSetting = 115
	codeQuota          = 201
	codeKilled         = 394
	codeCancelled      = 735
)

// codes holds the meaning of ClickHouse's error codes (src/Common/ErrorCodes.cpp).
// A code that is not here is permanent.
func codes(code int32) (codeInfo, bool) {
	switch code {
	case 158, 159, 160, 241, 307, 396:
		return codeInfo{KindLimit, remedyLimit}, true
	case 3, 32, 33, 40, 75, 95, 96, 100, 101, 102, 198, 209, 210, 236, 243, 254, 265, 279, 297, 369, 415, 416, 425, 519, 999, 1018:
		return codeInfo{KindElsewhere, ""}, true
	case 173, codeQuota, 202, 203, 252, 364, 439, 700, 745, 749, 777, 778, 1019, 1020:
		return codeInfo{KindLater, ""}, true
	case codeKilled, codeCancelled:
		return codeInfo{KindPermanent, "somebody ended the query on the server (KILL QUERY): find out why, then run the same command again"}, true
	case 192, 193, 194, 516:
		return codeInfo{KindPermanent, remedyLogin}, true
	case 291, 497:
		return codeInfo{KindPermanent, remedyGrants}, true
	case 10, 16, 36, 42, 43, 46, 47, 60, 62, 63, 81, 215:
		return codeInfo{KindPermanent, remedyNames}, true
	case 184:
		return codeInfo{KindPermanent, "a dimension or the filter holds an aggregate function: only metrics may"}, true
	case 288:
		return codeInfo{KindPermanent, "write GLOBAL IN, or GLOBAL JOIN, for what reads another Distributed table"}, true
	case 395:
		return codeInfo{KindPermanent, "an expression of the job refused a row with throwIf: correct the rows or the expression"}, true
	case codeUnknownSetting:
		return codeInfo{KindPermanent, "the server does not know a setting of the mover: report its version"}, true
	case 164, 452:
		return codeInfo{KindPermanent, "the user must be allowed to set the setting that is named: readonly=0 or readonly=2, and no constraint on it; " +
			"or its profile must hold the value already"}, true
	}
	return codeInfo{}, false
}
