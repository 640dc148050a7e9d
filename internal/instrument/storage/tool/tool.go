// Package tool knows the programs that load storage: which command does a job,
// which files have to be there before, and what the program says of it at the
// end. It runs nothing.
//
// fio is asked for JSON. dd and sysbench say what they did in words only, so
// their text is read. [Find] looks for all three in a text that somebody kept of
// earlier runs.
package tool

import (
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Place is where a job is run.
type Place struct {
	Program string        // the tool's path there
	Dir     string        // the folder of its files: target.VolumePath
	Device  string        // a block device instead of files, "" for none
	Direct  bool          // past the page cache
	Limit   time.Duration // when it has to stop, 0 for never
}

// File is one that has to be there before a job.
type File struct {
	Path string
	Size int64 // bytes
}

// Command returns the command line of a job. The job is resolved: scaled, and
// complete as plan says.
func Command(j plan.Job, at Place) ([]string, error) {
	switch j.Tool {
	case plan.ToolFio:
		return fioCommand(j, at)
	case plan.ToolDD:
		return ddCommand(j, at)
	case plan.ToolSysbench:
		return sysbenchCommand(j, at)
	}
	return nil, fmt.Errorf("unknown tool %q", j.Tool)
}

// Files returns the files that a job wants to find, under the names that its
// command uses; none for one that makes its own. On a device that is the device.
func Files(j plan.Job, at Place) ([]File, error) {
	switch j.Tool {
	case plan.ToolFio:
		return fioFiles(j, at)
	case plan.ToolDD:
		return ddFiles(j, at)
	case plan.ToolSysbench:
		return sysbenchFiles(j, at)
	}
	return nil, fmt.Errorf("unknown tool %q", j.Tool)
}

// Parse reads what the tool said at its end, and its version, "" where it does
// not say it. The command has exited with 0.
func Parse(j plan.Job, e subject.Executed) (c record.Claim, version string, err error) {
	switch j.Tool {
	case plan.ToolFio:
		return parseFio(e)
	case plan.ToolDD:
		c, err = parseDDRun(j, e)
		return c, "", err
	case plan.ToolSysbench:
		return parseSysbenchRun(e)
	}
	return record.Claim{}, "", fmt.Errorf("unknown tool %q", j.Tool)
}
