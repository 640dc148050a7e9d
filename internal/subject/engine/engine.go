// Package engine is what the packages of the engines share: how things are
// named so that they can be found again, sockets, and the words in which
// operations are described.
package engine

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tare-bench/tare/internal/subject"
)

// RunLabel is the label (annotation, for pods) with a run's id that everything
// made on an engine carries.
const RunLabel = "dev.tare.run"

// Name is that of the n-th thing that a run made on a lane. It is short, has
// only small letters, digits and dashes, and no two are the same.
func Name(runID string, lane, n int) string { return fmt.Sprintf("tare-%s-%d-%d", runID, lane, n) }

// serial makes names differ among all sessions of this process: two targets on
// one engine share its names.
var serial atomic.Int64

// NewName is a [Name] that no other session of this process was given.
func NewName(runID string, lane int) string { return Name(runID, lane, int(serial.Add(1))) }

// OfRun tells whether a name is one that [Name] gives to things of that run.
func OfRun(name, runID string) bool {
	return runID != "" && strings.HasPrefix(strings.TrimPrefix(name, "/"), "tare-"+runID+"-")
}

// Socket is the path of a unix socket's address, with or without the scheme;
// "" when the address is of another kind.
func Socket(address string) string {
	path, isUnix := strings.CutPrefix(address, "unix://")
	if !isUnix && strings.Contains(address, "://") || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// Unavailable says that a target cannot be weighed, why, and what would change
// it.
func Unavailable(name, advice, format string, arguments ...any) error {
	return &subject.Unavailable{Name: name, Reason: fmt.Sprintf(format, arguments...), Advice: advice}
}

// Failed names the target once, where an error leaves its package; nil for no errors.
func Failed(target, doing string, errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("target %s: %s: %w", target, doing, err)
	}
	return nil
}

// GuestClock tells whether a runtime's workload has a CLOCK_MONOTONIC of its
// own, by the runtime's name: gVisor and Kata.
func GuestClock(runtime string) bool {
	return isGVisor(runtime) || strings.Contains(runtime, "kata")
}

func isGVisor(runtime string) bool {
	return strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor")
}

// Clock is record.Target.Clock of a runtime.
func Clock(runtime string) string {
	if GuestClock(runtime) {
		return "guest"
	}
	return "host"
}

// Starting is the command that makes a daemon answer which does not: starting
// its service where the program is installed, else installing the package.
func Starting(program, service, pkg string) string {
	if _, err := exec.LookPath(program); err != nil {
		return "apt-get install " + pkg
	}
	return "systemctl start " + service
}
