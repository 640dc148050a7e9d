package cgroupstat

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// maxBytes is the largest plausible amount of memory. The kernel's "no limit" is above it.
const maxBytes = 1 << 62

// number parses a file or a field with one number.
func number(b []byte) (int64, bool) { return machine.Number(bytes.TrimSuffix(b, []byte("\n"))) }

// amount parses a number of bytes.
func amount(b []byte) (int64, error) {
	if n, ok := number(b); ok && n < maxBytes {
		return n, nil
	}
	return 0, malformed("a number of bytes", b)
}

// limit parses a limit. It returns 0 for no limit: the largest number in v1, "max" in v2.
func limit(b []byte) (int64, error) {
	n, ok := number(b)
	if !ok && string(bytes.TrimSuffix(b, []byte("\n"))) != "max" {
		return 0, malformed("a number of bytes or max", b)
	}
	if n >= maxBytes {
		return 0, nil
	}
	return n, nil
}

func malformed(want string, got []byte) error {
	return fmt.Errorf("%w: want %s, got %.80q", errForm, want, got)
}

// line splits the first line, "key value", off a flat keyed file.
func line(b []byte) (key, value, rest []byte) {
	key, rest, _ = bytes.Cut(b, []byte{'\n'})
	key, value, _ = bytes.Cut(key, []byte{' '})
	return key, value, rest
}

// keyed returns the number of a key in a flat keyed file, or -1 if its value is not a
// number. ok is false if the key is missing.
func keyed(b []byte, want string) (n int64, ok bool) {
	for len(b) > 0 {
		var key, value []byte
		key, value, b = line(b)
		if string(key) != want {
			continue
		}
		if n, ok := number(value); ok {
			return n, true
		}
		return -1, true
	}
	return 0, false
}

const pathLimit = 4096 // PATH_MAX

// clean validates a path as in /proc/PID/cgroup: from the root of the hierarchies. A path
// with ".." is outside of tare's cgroup namespace and not below the mounts.
func clean(p string) (string, error) {
	if !strings.HasPrefix(p, "/") || len(p) >= pathLimit || strings.ContainsRune(p, 0) || slices.Contains(strings.Split(p, "/"), "..") {
		return "", fmt.Errorf("cgroup %.200q: %w: want one that begins with / and has no .. in it", p, errPath)
	}
	return path.Clean(p), nil
}
