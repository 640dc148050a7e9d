package storage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
)

// Limits of a fio job file.
const (
	MaxSections = 100
	maxOptions  = 1000 // over all sections
	maxValue    = 4096 // bytes, of one option's value
)

// Section is a section of a fio job file.
type Section struct {
	Name    string      `json:"name"`
	Options []FioOption `json:"options"`
}

// FioOption is one line of a section. Value is "" if the line has no "=".
type FioOption struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Declare declares the fields of a section.
func (s *Section) Declare(set *option.Set) {
	option.Text(set, &s.Name, "name", "without the brackets: global, or a job's")
	option.Var(set, &s.Options, "options", "its lines, in order", option.ListOf(option.Fields("an option", FioOption{})), option.Nullable)
}

// Declare declares the fields of a line.
func (o *FioOption) Declare(s *option.Set) {
	option.Text(s, &o.Name, "name", "name before the =")
	option.Var(s, &o.Value, "value", "value after the = (default: there is no =)", option.Word)
}

// Global is the name of sections whose options apply to all later jobs.
const Global = "global"

// aliases are fio's alternative names of the options that are used here.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "timeout": "runtime", "io_limit": "io_size",
}

// FileJob is a job of a job file, including options of the global sections before it.
// Options have their canonical names; one without a value is "1".
type FileJob struct {
	Name    string
	Options map[string]string
}

// FileJobs returns the jobs of some sections, the way fio reads them.
func FileJobs(sections []Section) (jobs []FileJob) {
	common := map[string]string{}
	for _, s := range sections {
		into := common
		if s.Name != Global {
			into = maps.Clone(common)
			jobs = append(jobs, FileJob{s.Name, into})
		}
		for _, o := range s.Options {
			into[o.first()] = o.Given()
		}
	}
	return jobs
}

// first returns the canonical name of an option.
func (o *FioOption) first() string { return cmp.Or(aliases[o.Name], o.Name) }

// Given returns the option's value; without a value the option is on.
func (o *FioOption) Given() string { return cmp.Or(o.Value, "1") }

// errNoJob is the error for sections without a job.
var errNoJob = errors.New("it has no job: write a section such as [randread]")

// optionsWrong rejects options unless they are known to stay within tare's own files. A
// plan may contain options without a job file.
func (j *Job) optionsWrong() option.FieldErrors {
	var all option.FieldErrors
	if j.Tool != ToolFio {
		all = append(all, option.Wrongf("tool", "%s reads no job file: write tool fio, or leave options out", option.Quote(j.Tool)))
	}
	rest := *j
	rest.Name, rest.Tool, rest.Caches, rest.Volumes, rest.Options = "", "", nil, nil, nil
	if !reflect.DeepEqual(rest, Job{}) {
		all = append(all, option.Wrongf("options", "they define the whole job: leave out rw, bs, size and the other fields but name, tool, caches and volumes"))
	}
	if err := checkSections(j.Options); err != nil {
		all = append(all, option.Wrongf("options", "%v", err))
	}
	return all
}

func checkSections(sections []Section) error {
	if len(sections) > MaxSections {
		return fmt.Errorf("%d sections are too many: at most %d are allowed", len(sections), MaxSections)
	}
	count := 0
	for _, s := range sections {
		if count += len(s.Options); count > maxOptions {
			return fmt.Errorf("there are more than %d options", maxOptions)
		}
		if err := checkSection(s.Name); err != nil {
			return fmt.Errorf("section %s: %w", option.Quote(s.Name), err)
		}
		for _, o := range s.Options {
			if err := o.check(); err != nil {
				return fmt.Errorf("section %s: %w", option.Quote(s.Name), err)
			}
		}
	}
	if len(FileJobs(sections)) == 0 {
		return errNoJob
	}
	return nil
}

// checkSection accepts names that fio can use in file names. fio treats every name that
// begins with "global" as a global section.
func checkSection(name string) error {
	switch {
	case name == Global:
		return nil
	case name == "" || len(name) > MaxJobName:
		return fmt.Errorf("a name must have 1 to %d characters", MaxJobName)
	case strings.HasPrefix(strings.ToLower(name), Global):
		return errors.New("fio treats every name that begins with \"global\" as its global section: use another name")
	case strings.Trim(name, nameLetters) != "" || strings.ContainsRune(".- ", rune(name[0])) || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return errors.New("it is part of file names: use letters, digits, blanks and _ + = and, between those, . and -")
	}
	return nil
}

const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	nameLetters  = alphanumeric + "._+=- "
)
