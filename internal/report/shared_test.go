package report

import (
	"errors"
	"flag"
)

var update = flag.Bool("update", false, "write the golden files anew")

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("no space left")
