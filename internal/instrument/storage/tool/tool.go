// Package tool knows the programs that load storage: which command does a job,
// which files have to be there before, and what the program says of it at the
// end. It runs nothing.
//
// fio is asked for JSON. dd and sysbench say what they did in words only, so
// their text is read. [find] looks for all three in a text that somebody kept of
// earlier runs.
package tool

import (
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Place is where a job is run.
type Place struct {
	Program string                                    // the tool's path there
	Dir     string                                    // the folder of its files: target.VolumePath
	Device  string                                    // a block device instead of files, "" for none
	Direct  bool                                      // past the page cache
	Limit   time.Duration                             // when it has to stop, 0 for never
	In      func(dir string, args ...string) []string // what runs a command in a folder
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
	parse   func(j storage.Job, stdout, stderr string) (output, error)
}{
	storage.ToolFio:      {fioCommand, fioFiles, func(_ storage.Job, stdout, _ string) (output, error) { return parseFioJSON(stdout) }},
	storage.ToolDD:       {ddCommand, ddFiles, parseDDRun},
	storage.ToolSysbench: {sysbenchCommand, sysbenchFiles, func(_ storage.Job, stdout, _ string) (output, error) { return parseSysbench(stdout) }},
}

// Command returns the command line of a job. The job is resolved: scaled, and
// complete as plan says.
func Command(j storage.Job, at Place) ([]string, error) {
	if err := at.check(j); err != nil {
		return nil, err
	}
	return known[j.Tool].command(j, at)
}

// Files returns the files that a job wants to find, under the names that its
// command uses; none for one that makes its own. On a device that is the device.
func Files(j storage.Job, at Place) ([]File, error) {
	if err := at.check(j); err != nil {
		return nil, err
	}
	return known[j.Tool].files(j, at)
}

// Parse reads what the tool said at its end, and its version, "" where it does
// not say it. The command has exited with 0.
func Parse(j storage.Job, stdout, stderr string) (c record.Reported, version string, err error) {
	t, ok := known[j.Tool]
	switch {
	case !ok:
		return c, "", fmt.Errorf("unknown tool %q", j.Tool)
	case len(stdout)+len(stderr) > maxText:
		return c, "", fmt.Errorf("it is %d bytes long: at most %d are read", len(stdout)+len(stderr), maxText)
	}
	o, err := t.parse(j, stdout, stderr)
	if err != nil {
		return c, "", err
	}
	return o.Claim, o.Version, nil
}

// busybox is in the first line of the usage that it prints instead of a version.
var busybox = storage.Pattern(`BusyBox v[0-9][0-9A-Za-z.+-]{0,40}`)

// Version is what a tool says that was called with --version, in one line; ""
// where it says nothing that is one.
func Version(exit int, stdout, stderr string) string {
	if name := busybox().FindString(stdout + "\n" + stderr); name != "" {
		return name
	}
	line, _, _ := strings.Cut(strings.TrimSpace(stdout), "\n")
	if line = term.Clean(strings.TrimSpace(line)); exit != 0 || len(line) > 100 || !strings.ContainsAny(line, "0123456789") {
		return ""
	}
	return line
}
