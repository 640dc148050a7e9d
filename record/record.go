// Package record defines the file format of a run's measurements.
//
// A record is append-only JSON Lines, plain or zstd-compressed: one header (schema version,
// plan, environment), then targets and measurements in order of time, readings of the node
// and findings, and an end mark. Lines are never rewritten, so a record cut off by a crash
// is readable up to that point. Reports are made from records only.
//
// Every line is one JSON object with a "type". Readers skip unknown types and fields, so a
// record opens in every later version. [Schema] changes only if an existing field changes
// its meaning.
//
// All times are CLOCK_MONOTONIC nanoseconds of the machine that ran the plan, and are
// comparable only within one record. The header has one wall-clock time, for people.
package record

// Schema is the version of the format this package writes.
const Schema = 1

// Type names a line of a record.
type Type string
