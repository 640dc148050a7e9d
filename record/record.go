// Package record defines the file format of a run's measurements.
//
// A record is append-only JSON Lines, plain or zstd-compressed. It begins with a header (schema
// version, plan, environment). Targets, measurements, node readings and findings follow in
// chronological order. An end mark completes the record. Lines are never rewritten, so a record
// cut off by a crash is readable up to that point. Reports are made from records only.
//
// Every line is a JSON object with a "type". Readers skip unknown types and fields, so later
// versions can open any record. [Schema] changes only if an existing field changes its meaning.
//
// All times are CLOCK_MONOTONIC nanoseconds on the machine that ran the plan, and are comparable
// only within one record. The header has one wall-clock time, for display.
package record

// Schema is the version of the format that this package writes.
const Schema = 1

// Type is the type of a line.
type Type string
