package oci

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// state is the relevant part of the runtime spec's state.
type state struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Pid    int    `json:"pid"`
}

// parseState parses the output of `state ID`. Anything but a state of that container is an error.
func parseState(out, id string) (state, error) {
	var s state
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return state{}, fmt.Errorf("parse the output of state: %w", err)
	}
	if s.ID != id {
		return state{}, fmt.Errorf("state printed the container %q", s.ID)
	}
	switch s.Status {
	case "creating", "created", "running", "stopped":
	default:
		return state{}, fmt.Errorf("state reported the unknown status %q", s.Status)
	}
	if s.Pid < -1 || // runsc prints -1 for a stopped container
		s.Pid > procs.MaxPid {
		return state{}, fmt.Errorf("state reported the impossible pid %d", s.Pid)
	}
	return s, nil
}

// readPid reads the runtime's pid file.
func readPid(path string) (int, error) {
	// It may be a FIFO without a writer, which must not block.
	text, err := machine.ReadPlain(path, unix.O_NOFOLLOW, 32)
	if err != nil {
		return 0, fmt.Errorf("no pid file from the runtime: %w", err)
	}
	return parsePid(string(text))
}

// parsePid refuses pids that cannot be a container's process.
func parsePid(text string) (int, error) {
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || pid <= 1 || pid > procs.MaxPid {
		return 0, fmt.Errorf("invalid pid %q in the runtime's pid file", text)
	}
	return pid, nil
}
