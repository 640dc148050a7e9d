// Package proof has no code: its tests weigh loads of known size on every kind of
// real target, and hold the figures against what the loads were told.
package proof
