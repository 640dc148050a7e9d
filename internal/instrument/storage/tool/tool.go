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
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
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

// known are the tools: which command does a job, which files it wants to find, and
// what the tool said of it.
var known = map[string]struct {
	command func(storage.Job, Place) ([]string, error)
	files   func(storage.Job, Place) ([]File, error)
	parse   func(storage.Job, subject.Executed) (record.Reported, string, error)
}{
	storage.ToolFio:      {fioCommand, fioFiles, parseFio},
	storage.ToolDD:       {ddCommand, ddFiles, parseDDRun},
	storage.ToolSysbench: {sysbenchCommand, sysbenchFiles, parseSysbenchRun},
}

// Command returns the command line of a job. The job is resolved: scaled, and
// complete as plan says.
func Command(j storage.Job, at Place) ([]string, error) {
	if t, ok := known[j.Tool]; ok {
		return t.command(j, at)
	}
	return nil, fmt.Errorf("unknown tool %q", j.Tool)
}

// Files returns the files that a job wants to find, under the names that its
// command uses; none for one that makes its own. On a device that is the device.
func Files(j storage.Job, at Place) ([]File, error) {
	if t, ok := known[j.Tool]; ok {
		return t.files(j, at)
	}
	return nil, fmt.Errorf("unknown tool %q", j.Tool)
}

// Parse reads what the tool said at its end, and its version, "" where it does
// not say it. The command has exited with 0.
func Parse(j storage.Job, e subject.Executed) (c record.Reported, version string, err error) {
	if t, ok := known[j.Tool]; ok {
		return t.parse(j, e)
	}
	return record.Reported{}, "", fmt.Errorf("unknown tool %q", j.Tool)
}

// busybox is in the first line of the usage that it prints instead of a version.
var busybox = storage.Pattern(`BusyBox v[0-9][0-9A-Za-z.+-]{0,40}`)

// Version is what a tool says that was called with --version, in one line; ""
// where it says nothing that is one.
func Version(e subject.Executed) string {
	if name := busybox().FindString(e.Output + "\n" + e.Stderr); name != "" {
		return name
	}
	line, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	if line = term.Clean(strings.TrimSpace(line)); e.Exit != 0 || len(line) > 100 || !strings.ContainsAny(line, "0123456789") {
		return ""
	}
	return line
}
