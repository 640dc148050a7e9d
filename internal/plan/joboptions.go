package plan

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// What a job file of fio's may hold.
const (
	MaxSections = 100
	MaxOptions  = 1000 // of all sections together
	maxValue    = 4096 // bytes of an option's value
)

// optionName is what fio's own options are made of.
var optionName = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)

// optionsComplaints are about the form. What an option does in a sandbox is known
// to the tool.
func (j *Job) optionsComplaints() []complaint {
	var all []complaint
	if j.Tool != ToolFio {
		all = append(all, complain("tool", "%s reads no job file: write tool fio, or leave options out", quote(j.Tool)))
	}
	fields := Job{Name: j.Name, Tool: j.Tool, Caches: j.Caches, Volumes: j.Volumes, Options: j.Options}
	if !sameFields(j, &fields) {
		all = append(all, complain("options", "they say all that the job does: leave out rw, bs, size and the other fields but name, tool, caches and volumes"))
	}
	if len(j.Options) > MaxSections {
		return append(all, complain("options", "%d sections are too many: at most %d are allowed", len(j.Options), MaxSections))
	}
	count := 0
	for _, section := range j.Options {
		if count += len(section.Options); count > MaxOptions {
			return append(all, complain("options", "they are more than %d: at most as many are allowed", MaxOptions))
		}
		if err := section.check(); err != nil {
			return append(all, complain("options", "%v", err))
		}
	}
	return all
}

// sameFields compares all that is not a list.
func sameFields(a, b *Job) bool {
	return a.RW == b.RW && a.BS == b.BS && a.Size == b.Size && a.FileSize == b.FileSize && a.Count == b.Count && a.Files == b.Files &&
		a.NumJobs == b.NumJobs && a.IODepth == b.IODepth && a.Engine == b.Engine && a.Requests == b.Requests && a.Fsync == b.Fsync &&
		a.EndFsync == b.EndFsync && a.Runtime == b.Runtime && a.TimeBased == b.TimeBased
}

func (s *Section) check() error {
	if s.Name == "" || len(s.Name) > MaxJobName || strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == ']' || r == '[' }) {
		return fmt.Errorf("%s is not the name of a section", quote(s.Name))
	}
	for _, o := range s.Options {
		switch {
		case !optionName.MatchString(o.Name):
			return fmt.Errorf("%s in section %s is not the name of an option", quote(o.Name), quote(s.Name))
		case len(o.Value) > maxValue:
			return fmt.Errorf("the value of %s in section %s is %d bytes long: at most %d are allowed", o.Name, quote(s.Name), len(o.Value), maxValue)
		case strings.ContainsFunc(o.Value, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }):
			return fmt.Errorf("the value of %s in section %s is not one line of text", o.Name, quote(s.Name))
		}
	}
	return nil
}
