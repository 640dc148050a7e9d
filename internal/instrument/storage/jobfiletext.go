package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// Limits of a job file.
const (
	maxJobFile = 1 << 20 // bytes
	maxLine    = 4096    // bytes: fio's own limit
)

// ReadJobFile reads a fio job file into a job named after the file.
func ReadJobFile(path string) (Job, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxJobFile) {
		err = fmt.Errorf("%s is not a file of up to 1 MiB", path)
	}
	if err != nil {
		return Job{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Job{}, err
	}
	sections, err := ParseJobFile(string(text))
	if err != nil {
		return Job{}, fmt.Errorf("%s: %w", path, err)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return Job{Name: term.Clean(name), Tool: ToolFio, Options: sections}, nil
}

// ParseJobFile parses a fio job file, see fio(1), "JOB FILE FORMAT". It accepts options that
// move bytes in files of tare's own directory. It rejects options that leave the directory,
// run programs or write other files, and reports their line.
//
// Options that tare sets for every cell are allowed and overridden. The cache mode
// decides direct and buffered; the reported figures decide group_reporting and
// percentiles. A runtime is kept if it is shorter than the limit. A directory is
// rejected, because tare chooses it.
func ParseJobFile(text string) ([]Section, error) {
	if len(text) > maxJobFile {
		return nil, fmt.Errorf("the job file is %d bytes long: at most %d are read", len(text), maxJobFile)
	}
	var sections []Section
	options, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		at := func(format string, args ...any) error {
			return fmt.Errorf("line %d of the job file: %w", number, fmt.Errorf(format, args...))
		}
		if len(line) > maxLine {
			return nil, at("it is %d bytes long: at most %d are read", len(line), maxLine)
		}
		if i := strings.IndexAny(line, ";#"); i >= 0 {
			line = line[:i] // without its comment
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			if !ok {
				return nil, at("%.100q is not a section: missing ]", line)
			}
			if err := checkSection(name); err != nil {
				return nil, at("%.100q is not a section: %w", line, err)
			}
			if len(sections) == MaxSections {
				return nil, at("there are more than %d sections", MaxSections)
			}
			sections = append(sections, Section{Name: name})
		case len(sections) == 0:
			return nil, at("%.100q is before the first section: write [global] or the name of a job above it", line)
		default:
			name, value, _ := strings.Cut(line, "=") // "name=value", "name = value" or "name"
			o := FioOption{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
			if err := o.check(); err != nil {
				return nil, at("%w", err)
			}
			if options++; options > maxOptions {
				return nil, at("there are more than %d options", maxOptions)
			}
			last := &sections[len(sections)-1]
			last.Options = append(last.Options, o)
		}
	}
	if len(FileJobs(sections)) == 0 {
		return nil, fmt.Errorf("the job file: %w", errNoJob)
	}
	return sections, nil
}
