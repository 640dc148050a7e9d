package cgroupstat

import (
	"fmt"
	"path"
	"strings"
)

const pathLimit = 4096 // PATH_MAX

// clean validates a path as in /proc/PID/cgroup: from the root of the hierarchies. A path
// with ".." is outside of tare's cgroup namespace and not below the mounts.
func clean(p string) (string, error) {
	bad := !strings.HasPrefix(p, "/") || len(p) >= pathLimit || strings.ContainsRune(p, 0)
	for part := range strings.SplitSeq(p, "/") {
		bad = bad || part == ".."
	}
	if bad {
		return "", fmt.Errorf("cgroup %.200q: %w: want one that begins with / and has no .. in it", p, errPath)
	}
	return path.Clean(p), nil
}
