package survey

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/meter/group"
	"github.com/tare-bench/tare/record"
)

// mostExamples is how many problems are told in words.
const mostExamples = 5

// problem counts an error of a cgroup by its kind.
func problem(p *record.Problems, err error) {
	switch {
	case err == nil:
		return
	case errors.Is(err, group.ErrGone):
		p.Gone++
	case errors.Is(err, fs.ErrPermission):
		p.Denied++
	default:
		p.Broken++
	}
	example(p, err.Error())
}

func broken(p *record.Problems, err error) {
	p.Broken++
	example(p, err.Error())
}

func example(p *record.Problems, text string) {
	if len(p.Examples) < mostExamples {
		p.Examples = append(p.Examples, text)
	}
}

func add(p *record.Problems, more record.Problems) {
	p.Gone += more.Gone
	p.Reused += more.Reused
	p.Denied += more.Denied
	p.Backwards += more.Backwards
	p.Broken += more.Broken
	for _, e := range more.Examples {
		example(p, e)
	}
}

func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // all kernels have it
	return t.Nano()
}
