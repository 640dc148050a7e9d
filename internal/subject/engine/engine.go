// Package engine has what the packages of the engines share: sessions, names by which a
// run's objects are found again, sockets, logs, volumes and the descriptions of operations.
package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tare-bench/tare/internal/subject"
)

// RunLabel is the label (for pods, the annotation) with the run's id on everything that is
// made on an engine.
const RunLabel = "dev.tare.run"

// Name returns the name of the n-th object of a run on a lane: lower-case letters, digits
// and dashes only.
func Name(runID string, lane, n int) string { return fmt.Sprintf("tare-%s-%d-%d", runID, lane, n) }

// serial keeps names unique among all sessions of this process: two targets on one engine
// share its names.
var serial atomic.Int64

// NewName returns a [Name] that is unique in this process.
func NewName(runID string, lane int) string { return Name(runID, lane, int(serial.Add(1))) }

// OfRun reports whether [Name] made a name for that run.
func OfRun(name, runID string) bool {
	return runID != "" && strings.HasPrefix(strings.TrimPrefix(name, "/"), "tare-"+runID+"-")
}

// Socket returns the path of a unix socket's address, with or without a scheme. It returns
// "" for other addresses.
func Socket(address string) string {
	path, isUnix := strings.CutPrefix(address, "unix://")
	if !isUnix && strings.Contains(address, "://") || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// WithScheme adds unix:// to the path of a socket. It returns other addresses unchanged.
func WithScheme(address string) string {
	if filepath.IsAbs(address) {
		return "unix://" + address
	}
	return address
}

// SocketAdvice returns the advice for a socket that does not answer: missing if it does not exist.
func SocketAdvice(err error, missing, other string) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return missing
	case errors.Is(err, os.ErrPermission):
		return "run tare as root (sudo tare …)"
	}
	return other
}

// Unavailable returns the error of a target that cannot be measured, with advice.
func Unavailable(name, advice, format string, arguments ...any) error {
	return &subject.Unavailable{Name: name, Reason: fmt.Sprintf(format, arguments...), Advice: advice}
}

// Failed joins errors and prefixes them with the target's name, for callers in other packages. It
// returns nil if there are none.
func Failed(target, doing string, errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("target %s: %s: %w", target, doing, err)
	}
	return nil
}

func isGVisor(runtime string) bool {
	return strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor")
}

// Clock returns record.Target.Clock for a runtime: workloads of gVisor and Kata, by the runtime's
// name, have their own CLOCK_MONOTONIC.
func Clock(runtime string) string {
	if isGVisor(runtime) || strings.Contains(runtime, "kata") {
		return "guest"
	}
	return "host"
}

// Starting returns the command that gets a missing daemon to run: starting its service if
// the program is installed, else installing the package.
func Starting(program, service, pkg string) string {
	if _, err := exec.LookPath(program); err != nil {
		return "apt-get install " + pkg
	}
	return "systemctl start " + service
}
