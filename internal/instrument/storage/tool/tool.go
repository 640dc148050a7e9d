// Package tool builds the commands of storage benchmarks, lists the files they need, and
// parses their output. It runs nothing.
//
// fio prints JSON. dd and sysbench print text only, so that is parsed. [find] finds
// output of all three in a text kept from earlier runs.
package tool

import (
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Place is the environment of a job.
type Place struct {
	Program string                                    // path of the tool there
	Dir     string                                    // directory of its files, subject.VolumePath
	Device  string                                    // a block device instead of files; "" if none
	Direct  bool                                      // direct I/O
	Limit   time.Duration                             // time limit; 0 if none
	In      func(dir string, args ...string) []string // wraps a command to run in a directory
}

// File is a file that a job expects.
type File struct {
	Path string
	Size int64 // bytes
}

// known are the supported tools: how to build a job's command, list its files and parse
// the output.
var known = map[string]struct {
	command func(storage.Job, Place) ([]string, error)
	files   func(storage.Job, Place) ([]File, error)
	parse   func(j storage.Job, stdout, stderr string) (output, error)
}{
	storage.ToolFio:      {fioCommand, fioFiles, func(_ storage.Job, stdout, _ string) (output, error) { return parseFioJSON(stdout) }},
	storage.ToolDD:       {ddCommand, ddFiles, parseDDRun},
	storage.ToolSysbench: {sysbenchCommand, sysbenchFiles, func(_ storage.Job, stdout, _ string) (output, error) { return parseSysbench(stdout) }},
}

// Command returns the command line of a job. The job must be resolved: scaled and with
// all defaults filled in.
func Command(j storage.Job, at Place) ([]string, error) {
	if err := at.check(j); err != nil {
		return nil, err
	}
	return known[j.Tool].command(j, at)
}

// Files returns the files that a job expects, with the names in its command. There are
// none for a job that creates its own. For a device it returns the device.
func Files(j storage.Job, at Place) ([]File, error) {
	if err := at.check(j); err != nil {
		return nil, err
	}
	return known[j.Tool].files(j, at)
}

// Parse parses the output of a successful tool run. version is "" if the output does not
// contain it.
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

// busybox matches the first line of the usage text that it prints instead of a version.
var busybox = storage.Pattern(`BusyBox v[0-9][0-9A-Za-z.+-]{0,40}`)

// Version returns the version from the output of --version in one line, or "" if there
// is none.
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
