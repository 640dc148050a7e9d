package tool

import (
	"errors"

	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

// FioOptions are those of fio's own JSON that say what was run. What it does not
// say is "" or 0.
type FioOptions struct {
	Name             string // of the first job
	RW               string
	BS, Size         int64 // bytes
	NumJobs, IODepth int
	Direct           bool
	Engine           string
	Jobs             int // that the JSON has; with group_reporting groups
}

// ParseFioJSON reads what fio --output-format=json prints, or json+, of fio 2
// and 3, whatever lines stand before and after it.
func ParseFioJSON(text string) (c record.Claim, o FioOptions, version string, err error) {
	return c, o, "", errors.New("not written yet")
}

func parseFio(e target.Executed) (record.Claim, string, error) {
	c, _, version, err := ParseFioJSON(e.Output)
	return c, version, err
}
