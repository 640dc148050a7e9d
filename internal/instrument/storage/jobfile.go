package storage

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode"

	"github.com/tare-bench/tare/internal/core/option"
)

// What a job file of fio's may hold.
const (
	MaxSections = 100
	MaxOptions  = 1000 // of all sections together
	maxValue    = 4096 // bytes of an option's value
)

// Section is one of a job file of fio's.
type Section struct {
	Name    string      `json:"name"`
	Options []FioOption `json:"options"`
}

// FioOption is one line of a section. Value is "" for one without "=".
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
	option.Text(s, &o.Name, "name", "what stands before the =")
	option.Var(s, &o.Value, "value", "what stands behind it (default: there is no =)", option.Word)
}

// global is the section whose options all later jobs have.
const global = "global"

// aliases are fio's other names of options that are looked at here.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "timeout": "runtime", "io_limit": "io_size",
}

// FileJob is a job of a job file with all that it has from global sections before
// it. Options are by the first of their names; one without a value is "1".
type FileJob struct {
	Name    string
	Options map[string]string
}

// FileJobs are the jobs of some sections, as fio has them.
func FileJobs(sections []Section) (jobs []FileJob) {
	common := map[string]string{}
	for _, s := range sections {
		into := common
		if s.Name != global {
			into = maps.Clone(common)
			jobs = append(jobs, FileJob{s.Name, into})
		}
		for _, o := range s.Options {
			name := strings.ToLower(o.Name)
			if first, ok := aliases[name]; ok {
				name = first
			}
			into[name] = o.Given()
		}
	}
	return jobs
}

// Given is an option's value: one without switches it on.
func (o *FioOption) Given() string {
	if o.Value == "" {
		return "1"
	}
	return o.Value
}

// optionName is what fio's own options are made of.
var optionName = Pattern(`^[A-Za-z0-9_]{1,100}$`)

// optionsWrong are about the form. What an option does in a sandbox is known
// to the tool.
func (j *Job) optionsWrong() option.FieldErrors {
	var all option.FieldErrors
	if j.Tool != ToolFio {
		all = append(all, option.Wrongf("tool", "%s reads no job file: write tool fio, or leave options out", option.Quote(j.Tool)))
	}
	rest := *j
	rest.Name, rest.Tool, rest.Caches, rest.Volumes, rest.Options = "", "", nil, nil, nil
	if !reflect.DeepEqual(rest, Job{}) {
		all = append(all, option.Wrongf("options", "they say all that the job does: leave out rw, bs, size and the other fields but name, tool, caches and volumes"))
	}
	if len(j.Options) > MaxSections {
		return append(all, option.Wrongf("options", "%d sections are too many: at most %d are allowed", len(j.Options), MaxSections))
	}
	count := 0
	for _, section := range j.Options {
		if count += len(section.Options); count > MaxOptions {
			return append(all, option.Wrongf("options", "they are more than %d: at most as many are allowed", MaxOptions))
		}
		if err := section.check(); err != nil {
			return append(all, option.Wrongf("options", "%v", err))
		}
	}
	return all
}

func (s *Section) check() error {
	if s.Name == "" || len(s.Name) > MaxJobName || strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == ']' || r == '[' }) {
		return fmt.Errorf("%s is not the name of a section", option.Quote(s.Name))
	}
	for _, o := range s.Options {
		switch {
		case !optionName().MatchString(o.Name):
			return fmt.Errorf("%s in section %s is not the name of an option", option.Quote(o.Name), option.Quote(s.Name))
		case len(o.Value) > maxValue:
			return fmt.Errorf("the value of %s in section %s is %d bytes long: at most %d are allowed", o.Name, option.Quote(s.Name), len(o.Value), maxValue)
		case strings.ContainsFunc(o.Value, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }):
			return fmt.Errorf("the value of %s in section %s is not one line of text", o.Name, option.Quote(s.Name))
		}
	}
	return nil
}
