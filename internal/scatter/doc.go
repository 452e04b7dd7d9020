// Package scatter cuts a job into slices and runs them on the nodes of the
// cluster: [Planner] decides, [Executor] dispatches. It knows how to ask
// ClickHouse and nothing of where the rows go.
package scatter
