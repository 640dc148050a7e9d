package lane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endStrays ends what commands left running: a lane is the subreaper of all it
// started, so whatever still is its child when the pool is closed was made by a
// command, and is no container that a session knows of.
func (p *Pool) endStrays() {
	for range 5 {
		strays := p.children()
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			// The number could be another's by now: looked at again while the
			// process is pinned.
			if parent, ok := parentOf(pid); ok && slices.Contains(p.procs, parent) {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			_ = unix.Close(fd)
		}
		// What they had started becomes the lanes' in turn.
		time.Sleep(5 * time.Millisecond)
	}
}

// children lists the running children of all lanes.
func (p *Pool) children() []int {
	files, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(f))
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok && slices.Contains(p.procs, parent) {
			out = append(out, pid)
		}
	}
	return out
}

// parentOf reads a process's parent; ok is false when it is gone or a zombie.
// Format: proc(5), "pid (comm) state ppid", where comm may hold anything.
func parentOf(pid int) (parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return 0, false
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 2 || string(fields[0]) == "Z" {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
