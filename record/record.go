// Package record defines the file that holds everything a run saw.
//
// A record is append-only JSON Lines, plain or zstd-compressed: one header
// (schema version, plan, environment, targets), then every batch, or every
// reading and series, or every cell, as it happened, node readings and findings
// between them, and an end mark. Nothing is written twice and nothing is
// rewritten, so what a crash cut off still reads: a record without an end mark
// is a record of what was measured up to then. Reports are made from records and
// from nothing else.
//
// Every line is one JSON object whose "type" names what it is. Readers skip
// types and fields they do not know, so that a record written today opens in
// every later version; [Schema] grows only when an old field changes meaning.
//
// All times are CLOCK_MONOTONIC nanoseconds of the machine that ran the plan,
// and are comparable only within one record. The one wall-clock time is in the
// header, for people.
package record

// Schema is the version of the format this package writes.
const Schema = 1

// Type names a line of a record.
type Type string
