package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Memory is what /proc/meminfo says of the machine, in bytes.
type Memory struct {
	Total     int64
	Available int64 // can be had without swapping; Linux 3.14
	SwapTotal int64
	SwapFree  int64
}

// Memory reads the machine's memory.
func (r Root) Memory() (Memory, error) {
	data, err := r.Read("/proc/meminfo", 64<<10)
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(string(data))
}

func parseMemory(text string) (Memory, error) {
	var m Memory
	fields := map[string]*int64{
		"MemTotal": &m.Total, "MemAvailable": &m.Available,
		"SwapTotal": &m.SwapTotal, "SwapFree": &m.SwapFree,
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		field, wanted := fields[name]
		if !wanted {
			continue
		}
		bytes, err := parseKiB(value)
		if err != nil {
			return Memory{}, fmt.Errorf("parse /proc/meminfo: %s: %w", name, err)
		}
		*field = bytes
	}
	if m.Total == 0 {
		return Memory{}, errors.New("parse /proc/meminfo: it has no MemTotal; look whether something is mounted over it")
	}
	return m, nil
}

// parseKiB reads "   16384 kB". The kernel's kB are KiB.
func parseKiB(s string) (int64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), " kB")
	if !ok || !isDigits(digits) {
		return 0, fmt.Errorf("want a number of kB, got %.40q", s)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > 1<<50 {
		return 0, fmt.Errorf("want a number of kB, got %.40q", s)
	}
	return n << 10, nil
}
