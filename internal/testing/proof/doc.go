// Package proof has no code: its tests weigh loads of known size, and watch starts
// with waits of known length, on every kind of real target, and hold the figures
// against what the loads and the waits were told.
package proof
