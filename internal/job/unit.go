package job

import "time"

// A Unit is one level over one period on one business date: what one unsliced
// query would compute. A run of a job is the product of its levels and periods.
type Unit struct {
	// Level is an index into [Job.Levels], and Code that level's code.
	Level int
	Code  string
	// Period is the resolved period.
	Period Span
	// Date is the business date of the run (midnight UTC of that day).
	Date time.Time
}

// A Span is a period resolved for a business date.
type Span struct {
	// Period is the name in the job file, {tp} in keys.
	Period Period
	// Start and End are the first and the last day, both included, each as
	// midnight UTC of that calendar day.
	Start, End time.Time
}

// A Period is the name of a period: DAY, WEEK, MONTH, QUARTER, YEAR or
// BY_LAST_DAYS_n.
type Period string
