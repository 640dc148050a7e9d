package snapshot

import (
	"errors"
	"io/fs"

	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/record"
)

// problem counts an error of a cgroup by its kind.
func problem(p *record.Problems, err error) {
	switch {
	case err == nil:
		return
	case errors.Is(err, cgroupstat.ErrGone):
		p.Gone++
	case errors.Is(err, fs.ErrPermission):
		p.Denied++
	default:
		p.Broken++
	}
	p.Note(err.Error())
}

func broken(p *record.Problems, err error) {
	p.Broken++
	p.Note(err.Error())
}
