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

// state is the part of the runtime spec's state that matters here.
type state struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Pid    int    `json:"pid"`
}

// parseState reads what `state ID` printed. It is foreign text: anything that
// is not the answer to the question is an error.
func parseState(out, id string) (state, error) {
	var s state
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return state{}, fmt.Errorf("state printed no JSON object: %w", err)
	}
	if s.ID != id {
		return state{}, fmt.Errorf("state answered for container %q", s.ID)
	}
	switch s.Status {
	case "creating", "created", "running", "stopped":
	default:
		return state{}, fmt.Errorf("state reported the unknown status %q", s.Status)
	}
	if s.Pid < -1 || // runsc says -1 of a stopped container
		s.Pid > procs.MaxPid {
		return state{}, fmt.Errorf("state reported the impossible pid %d", s.Pid)
	}
	return s, nil
}

// readPid reads the file that the runtime was told to write.
func readPid(path string) (int, error) {
	// It could be a FIFO that nobody writes to: opening must not wait.
	f, err := machine.OpenPlain(path, unix.O_NOFOLLOW)
	if err != nil {
		return 0, fmt.Errorf("the runtime wrote no pid file: %w", err)
	}
	defer f.Close()
	b := make([]byte, 32)
	n, _ := f.Read(b)
	return parsePid(string(b[:n]))
}

// parsePid refuses what cannot be a container's process.
func parsePid(text string) (int, error) {
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || pid <= 1 || pid > procs.MaxPid {
		return 0, fmt.Errorf("the runtime's pid file holds %q", text)
	}
	return pid, nil
}
