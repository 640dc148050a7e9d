package machine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads a clock of the kernel, ns.
func Clock(id int32) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // fails only for clocks that the kernel lacks
	return t.Nano()
}

// Now returns the time of CLOCK_MONOTONIC, ns.
func Now() int64 { return Clock(unix.CLOCK_MONOTONIC) }

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Await calls look at an interval until it returns true. It reports false after the time
// most, or if ctx ends.
func Await(ctx context.Context, most, interval time.Duration, look func() bool) bool {
	for deadline := time.Now().Add(most); !look(); _ = Sleep(ctx, interval) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Ahead returns by how much (ns) the time of day is ahead of CLOCK_MONOTONIC. It uses the
// shortest of a few readings: an interruption adds half its duration to the error.
func Ahead() (by int64) {
	for closest, i := int64(math.MaxInt64), 0; i < 8; i++ {
		before := Now()
		day := Clock(unix.CLOCK_REALTIME)
		if took := Now() - before; took < closest {
			closest, by = took, day-before-took/2
		}
	}
	return by
}

// Load returns the load average of one minute.
func (r Root) Load() (float64, error) {
	line, err := r.FirstLine("/proc/loadavg", 256)
	if err != nil {
		return 0, err
	}
	thousandths, err := ParseLoad([]byte(line))
	return float64(thousandths) / 1000, err
}

// ParseLoad parses the first number of /proc/loadavg, "0.01 0.35 0.31 1/87 10696", in
// thousandths. It has two decimals, see fs/proc/loadavg.c.
func ParseLoad(b []byte) (thousandths int64, err error) {
	first, _ := Field(b, 0)
	whole, part, dot := bytes.Cut(first, []byte("."))
	w, ok := Number(whole)
	p, ok2 := Number(part)
	if !dot || !ok || !ok2 || len(part) != 2 || w > maxKiB {
		return 0, fmt.Errorf("parse /proc/loadavg: want a number with two decimals first, got %.40q", b)
	}
	return w*1000 + p*10, nil
}

// Tasks returns the number of processes and threads including kernel threads: the second
// number of "1/87" in /proc/loadavg.
func Tasks(loadavg []byte) (int64, bool) {
	running, _ := Field(loadavg, 3)
	_, all, _ := bytes.Cut(running, []byte("/"))
	return Number(all)
}

// MaxTasks returns how many processes and threads can exist, or 0 if unknown.
func (r Root) MaxTasks() int64 {
	most := int64(0)
	for _, name := range []string{"pid_max", "threads-max"} {
		if n, ok := r.Number("/proc/sys/kernel/" + name); ok && n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// Field skips n fields of a line and returns the next one and the rest of the line.
func Field(line []byte, n int) (field, rest []byte) {
	for {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexAny(line, " \n")
		if end < 0 {
			end = len(line)
		}
		field, line = line[:end], line[end:]
		if n == 0 || len(field) == 0 {
			return field, line
		}
		n--
	}
}

// Number parses decimal digits of a number below 2^63.
func Number(digits []byte) (int64, bool) {
	if len(digits) == 0 || len(digits) > 19 { // 2^63 has 19 digits
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n < 1<<63
}
