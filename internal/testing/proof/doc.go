// Package proof has only tests. They run loads of known size, and starts with waits of
// known length, on every kind of real target. The measured figures must match the
// requested ones.
package proof
