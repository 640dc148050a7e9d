package tool

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/record"
)

// Codes of findings of an import.
const (
	FoundUnread    = "import-unread"      // outputs that could not be read
	FoundLimit     = "import-limit"       // more outputs than are kept
	FoundNumbered  = "import-numbered"    // outputs of one job, distinguished by numbers
	FoundDirection = "import-direction"   // of a dd without its command
	FoundUnknown   = "import-environment" // facts that an imported record lacks
)

// maxUnread is the maximum of unreadable outputs that are listed.
const maxUnread = 20

// Imported collects the outputs of several texts into a record: its plan and its lines.
type Imported struct {
	Plan     storage.Options
	Targets  []record.Target
	Cells    []record.Cell
	Findings []record.Finding
	Unread   []string // every unreadable output: where it is and why
	texts    []keptText
}

// Told holds user settings for all outputs in a text. They override the outputs.
type Told struct {
	Label  string // target name; "" means the name of the text
	Volume string // a kind of volume, see record
	Cache  string // record.CacheDirect, record.CacheBuffered
}

type keptText struct {
	name  string
	told  Told
	found []output
}

var label = storage.Pattern(`^[\pL\pN][\pL\pN._/+-]{0,63}$`)

// IsLabel reports whether name is a valid target name.
func IsLabel(name string) bool { return label().MatchString(name) }

// LabelOf returns a target name for a file: host for host.txt.
func LabelOf(file string) string {
	base := path.Base(file)
	if base = strings.TrimSuffix(base, path.Ext(base)); !IsLabel(base) {
		return "imported"
	}
	return base
}

// Add adds the outputs of a text. Unusable outputs are skipped and reported.
func (g *Imported) Add(name string, text *transcript.Stream, told Told) {
	found, left := find(text)
	told.Label = cmp.Or(told.Label, LabelOf(name))
	assumed, bad := 0, []string{}
	found = slices.DeleteFunc(found, func(o output) bool {
		if o.Err == nil {
			c := o.cell(name, told)
			o.Err = errors.Join(record.Validate(c), o.Err)
		}
		if o.Err != nil {
			bad = append(bad, fmt.Sprintf("%s:%d: %s", name, o.Line, strings.Join(strings.Fields(o.Err.Error()), " ")))
		} else if o.Assumed {
			assumed++
		}
		return o.Err != nil
	})
	g.Unread = append(g.Unread, bad...)
	named := bad
	if left := len(bad) - maxUnread; left > 0 {
		named = append(slices.Clone(bad[:maxUnread]), fmt.Sprintf("and %d more", left))
	}
	g.find(len(bad), FoundUnread, "warning", fmt.Sprintf("%s: %d of the outputs could not be read: %s", name, len(bad), strings.Join(named, "; ")),
		"check those lines: complete or remove truncated outputs")
	g.find(left, FoundLimit, "warning", fmt.Sprintf("%s: %d outputs left out: at most %d are kept per text", name, left, maxFound), "split the text into several files")
	g.find(assumed, FoundDirection, "note", fmt.Sprintf("%s: outputs of dd without their command, assumed to be writes: %d", name, assumed), "put the command before the output if it was a read")
	g.texts = append(g.texts, keptText{name, told, found})
}

func (g *Imported) find(n int, code, level, message, advice string) {
	if n > 0 {
		g.Findings = append(g.Findings, record.Finding{Code: code, Level: level, Message: message, Advice: advice})
	}
}

// Close fills in the record's content. Repeated outputs of a job in one text become
// separate targets, LABEL-1 and LABEL-2, since they may be from different machines.
// Outputs of a job in several texts with the same label are rounds.
func (g *Imported) Close() {
	g.jobs()
	rounds := map[[4]string]int{}
	for _, text := range g.texts {
		times, sofar, numbered := map[string]int{}, map[string]int{}, 0
		for _, o := range text.found {
			times[o.Job.Name]++
		}
		for _, o := range text.found {
			c := o.cell(text.name, text.told)
			if c.Job = o.Job.Name; times[c.Job] > 1 {
				numbered++
				sofar[c.Job]++
				c.Target = fmt.Sprintf("%s-%d", c.Target, sofar[c.Job])
			}
			at := [4]string{c.Target, c.Volume, c.Cache, c.Job}
			c.Round = rounds[at]
			rounds[at]++
			g.take(c)
		}
		g.find(numbered, FoundNumbered, "note", fmt.Sprintf("%s: repeated outputs of the same job: %d; %s-1 is the first of each", text.name, numbered, text.told.Label),
			"use a separate text for each target, as tare import LABEL=FILE; texts with the same label are rounds")
	}
	g.find(len(g.Cells), FoundUnknown, "note", "imported: these are figures printed by tools earlier; there are no device readings, and machines, kernels and runtimes are unknown",
		"run tare storage to get them with device readings")
}

func (g *Imported) take(c record.Cell) {
	p := &g.Plan
	g.Cells = append(g.Cells, c)
	p.Rounds = max(p.Rounds, c.Round+1)
	if !slices.Contains(p.Targets, c.Target) {
		p.Targets = append(p.Targets, c.Target)
		g.Targets = append(g.Targets, record.Target{Name: c.Target, Kind: "imported"})
	}
	if !slices.Contains(p.Volumes, c.Volume) {
		p.Volumes = append(p.Volumes, c.Volume)
	}
	if !slices.Contains(p.Cache, c.Cache) {
		p.Cache = append(p.Cache, c.Cache)
	}
}

// jobs names the jobs, and sets the plan with each job once. Some outputs, such as fio's
// text, lack the size. Such an output belongs to the job of the same kind with a known
// size, if there is exactly one.
func (g *Imported) jobs() {
	g.Plan = storage.Options{Title: "imported results", Whom: terms.Whom{Targets: []string{}}, Volumes: []string{}, Cache: []string{}, Jobs: []storage.Job{}, Scale: 1}
	sized := map[string][]string{} // known sizes by kind of job
	g.each(func(o *output) {
		if kind, size := o.kind(); size != "" && !slices.Contains(sized[kind], size) {
			sized[kind] = append(sized[kind], size)
		}
	})
	place := map[string]int{}
	g.each(func(o *output) {
		kind, size := o.kind()
		o.Job.Name = strings.TrimSpace(kind + " " + size)
		if sizes := sized[kind]; size == "" && len(sizes) == 1 {
			o.Job.Name += " " + sizes[0]
		}
		if i, there := place[o.Job.Name]; !there {
			place[o.Job.Name] = len(g.Plan.Jobs)
			g.Plan.Jobs = append(g.Plan.Jobs, o.Job)
		} else if size != "" {
			g.Plan.Jobs[i] = o.Job
		}
	})
}

func (g *Imported) each(do func(*output)) {
	for _, text := range g.texts {
		for i := range text.found {
			do(&text.found[i])
		}
	}
}

// kind returns what identifies a job: "randread 512k ×8 libaio" and "1G".
func (o *output) kind() (kind, size string) {
	j := o.Job
	wrote, read := o.Claim.Write != (record.Flow{}), o.Claim.Read != (record.Flow{})
	kind = cmp.Or(j.RW, map[[2]bool]string{{true, true}: "mixed", {true, false}: "write"}[[2]bool{wrote, read}], "read")
	switch {
	case o.Prepare:
		kind = j.Tool + " prepare"
	case j.Tool != storage.ToolFio || j.RW == "":
		kind = j.Tool + " " + kind
	}
	for _, more := range []struct {
		say  bool
		text string
	}{
		{j.BS > 0, storage.FormatSize(j.BS)}, {j.NumJobs > 1, fmt.Sprintf("×%d", j.NumJobs)}, {j.Engine != "" && j.Engine != "psync", j.Engine},
		{j.IODepth > 1, fmt.Sprintf("depth %d", j.IODepth)},
	} {
		if more.say {
			kind += " " + more.text
		}
	}
	switch {
	case j.Count > 0:
		return kind, fmt.Sprintf("count=%d", j.Count)
	case j.Size > 0:
		return kind, storage.FormatSize(j.Size)
	}
	return kind, ""
}

// cell returns the record line of an output.
func (o *output) cell(source string, told Told) record.Cell {
	kind, _ := o.kind()
	return record.Cell{Type: record.TypeCell, Target: told.Label, Volume: told.Volume, Cache: cmp.Or(told.Cache, o.Cache), Job: kind,
		Tool: o.Job.Tool, Version: o.Version, Source: fmt.Sprintf("%s:%d", source, o.Line), Reported: &o.Claim}
}
