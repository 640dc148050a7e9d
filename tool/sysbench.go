package tool

import (
	"errors"

	"github.com/tare-bench/tare/plan"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

// SysbenchOptions are those that its fileio test prints. What it does not say is
// "" or 0.
type SysbenchOptions struct {
	Mode      string // as --file-test-mode has it: "rndrw"
	Threads   int
	Files     int
	TotalSize int64 // bytes of all files, as printed: rounded
	BlockSize int64 // bytes
	Requests  int64 // that were asked for, 0: by time
	Direct    bool
}

// ParseSysbench reads the output of sysbench's fileio test, of 0.4, 0.5 and 1.0.
func ParseSysbench(text string) (c record.Claim, o SysbenchOptions, version string, err error) {
	return c, o, "", errors.New("not written yet")
}

func sysbenchCommand(plan.Job, Place) ([]string, error) { return nil, errors.New("not written yet") }
func sysbenchFiles(plan.Job, Place) ([]File, error)     { return nil, errors.New("not written yet") }
func parseSysbenchRun(e target.Executed) (record.Claim, string, error) {
	c, _, version, err := ParseSysbench(e.Output)
	return c, version, err
}
