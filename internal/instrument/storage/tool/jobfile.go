package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// The most that a job file may be.
const (
	maxJobFile = 256 << 10 // bytes
	maxLine    = 4096      // bytes: fio's own
	global     = "global"  // the section whose options all later jobs have
)

// ParseJobFile reads a job file of fio's, see fio(1), "JOB FILE FORMAT". It takes
// options that move bytes in files of tare's own folder, and refuses, with their
// line, those that would leave it, run programs or write files on the side.
//
// What tare sets for every cell may be there and is overridden: direct and
// buffered by the cache, group_reporting and the percentiles by what a claim
// holds. A runtime is kept where it is shorter than the limit. A directory is
// refused, for it is tare's to choose.
func ParseJobFile(text string) ([]storage.Section, error) {
	if len(text) > maxJobFile {
		return nil, fmt.Errorf("the job file is %d bytes long: at most %d are read", len(text), maxJobFile)
	}
	var sections []storage.Section
	options, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		at := func(format string, args ...any) error {
			return fmt.Errorf("line %d of the job file: %w", number, fmt.Errorf(format, args...))
		}
		if len(line) > maxLine {
			return nil, at("it is %d bytes long: at most %d are read", len(line), maxLine)
		}
		line = uncommented(line)
		switch {
		case line == "":
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			if err := checkSection(name); err != nil || !ok {
				return nil, at("%.100q begins no section: %w", line, errOr(err, "it has no ]"))
			}
			if len(sections) == storage.MaxSections {
				return nil, at("there are more than %d sections", storage.MaxSections)
			}
			sections = append(sections, storage.Section{Name: name})
		case len(sections) == 0:
			return nil, at("%.100q stands before the first section: write [global] or the name of a job above it", line)
		default:
			o := parseOption(line)
			if err := checkOption(o); err != nil {
				return nil, at("%w", err)
			}
			if options++; options > storage.MaxOptions {
				return nil, at("there are more than %d options", storage.MaxOptions)
			}
			last := &sections[len(sections)-1]
			last.Options = append(last.Options, o)
		}
	}
	if err := checkSections(sections); err != nil {
		return nil, fmt.Errorf("the job file: %w", err)
	}
	return sections, nil
}

// uncommented is a line without what fio leaves out: from a ; or # on, and blanks.
func uncommented(line string) string {
	if i := strings.IndexAny(line, ";#"); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSpace(line)
}

// parseOption takes "name=value", "name = value" and "name".
func parseOption(line string) storage.FioOption {
	name, value, _ := strings.Cut(line, "=")
	return storage.FioOption{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
}

func errOr(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// checkSection takes names that fio can name files by. Everything that begins
// with "global" is a global section to fio.
func checkSection(name string) error {
	switch {
	case name == global:
		return nil
	case name == "" || len(name) > storage.MaxJobName:
		return fmt.Errorf("a name has from 1 to %d characters", storage.MaxJobName)
	case strings.HasPrefix(strings.ToLower(name), global):
		return errors.New("fio takes every name that begins with \"global\" for its global section: use another one")
	case strings.Trim(name, nameLetters) != "" || strings.ContainsRune(".- ", rune(name[0])) || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return errors.New("files are named by it: use letters, digits, blanks and _ + = and, between those, . and -")
	}
	return nil
}

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	nameLetters  = alphanumeric + "._+=- "
)

// checkSections is what is wrong with options wherever they come from: a plan may
// hold them without a job file.
func checkSections(sections []storage.Section) error {
	jobs := 0
	for _, s := range sections {
		if err := checkSection(s.Name); err != nil {
			return fmt.Errorf("section %.100q: %w", s.Name, err)
		}
		if s.Name != global {
			jobs++
		}
		for _, o := range s.Options {
			if err := checkOption(o); err != nil {
				return fmt.Errorf("section %.100q: %w", s.Name, err)
			}
		}
	}
	if jobs == 0 {
		return errors.New("it has no job: write a section such as [randread]")
	}
	return nil
}
