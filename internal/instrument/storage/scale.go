package storage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

// resolved is the job as it is run, see [Options.Resolved].
func (j *Job) resolved(scale float64) (Job, error) {
	if scale == 0 {
		scale = 1
	}
	if len(j.Options) > 0 {
		return j.scaledOptions(scale)
	}
	r := *j
	r.Files, r.NumJobs = max(r.Files, 1), max(r.NumJobs, 1)
	files := int64(r.Files)
	blocks := max(scaled(j.Bytes(), scale)/files/j.BS, 1)
	if scale != 1 { // every thread still has a block
		blocks = max(blocks, (int64(r.NumJobs)+files-1)/files)
	}
	r.FileSize = blocks * j.BS
	if r.FileSize > MaxFile/files {
		return Job{}, fmt.Errorf("by a scale of %g its files are larger than 16T: write a smaller scale", scale)
	}
	r.Size = r.FileSize * files
	if r.Runtime > 0 {
		r.Runtime = min(max(time.Duration(scaled(int64(r.Runtime), scale)), MinRuntime), MaxRuntime)
	}
	if r.Requests > 0 {
		r.Requests = min(max(scaled(r.Requests, scale), 1), MaxRequests)
	}
	switch r.Tool {
	case ToolFio:
		r.IODepth, r.Engine = max(r.IODepth, 1), r.engine()
	case ToolDD:
		r.Count = blocks
	}
	return r, nil
}

// scaled is exact where nothing is scaled: a float64 holds 53 bits.
func scaled(n int64, scale float64) int64 {
	if scale == 1 {
		return n
	}
	// The largest that is ever scaled is below 2^52, by at most 1000.
	return int64(float64(n) * scale)
}

// scaledOptions scales what is in a job file: sizes, the count of requests and
// the time. A value of a form that is not a plain number cannot be scaled.
func (j *Job) scaledOptions(scale float64) (Job, error) {
	if scale == 1 {
		return *j, nil
	}
	r := *j
	r.Options = slices.Clone(j.Options)
	for i := range r.Options {
		section := &r.Options[i]
		section.Options = slices.Clone(section.Options)
		for k := range section.Options {
			o := &section.Options[k]
			value, err := scaledOption(*o, scale, func() (int64, error) { return blockOf(j.Options, i) })
			if err != nil {
				return Job{}, fmt.Errorf("%s=%s in section %s cannot be scaled: %w; write it as a plain number, or no scale", o.Name, option.Shorten(o.Value), option.Quote(section.Name), err)
			}
			o.Value = value
		}
	}
	return r, nil
}

func scaledOption(o FioOption, scale float64, block func() (int64, error)) (string, error) {
	switch o.first() {
	case "size", "io_size", "filesize":
		size, _ := ParseFioSize(o.Value) // which was checked, as all sizes and times were
		bs, err := block()
		if err != nil {
			return "", err
		}
		size = max(scaled(size, scale)/bs*bs, bs)
		if size > MaxFile {
			return "", errors.New("it is above 16T")
		}
		return FormatSize(size), nil
	case "number_ios":
		n, err := strconv.ParseInt(o.Value, 10, 64)
		if err != nil || n < 1 || n > MaxRequests {
			return "", fmt.Errorf("it is no number from 1 to %d", int64(MaxRequests))
		}
		return strconv.FormatInt(max(scaled(n, scale), 1), 10), nil
	case "runtime":
		d, _ := ParseFioTime(o.Value)
		if d == 0 {
			return o.Value, nil // none
		}
		d = min(max(time.Duration(scaled(int64(d), scale)), MinRuntime), MaxRuntime)
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms", nil
	}
	return o.Value, nil
}

// blockOf is the largest block of a section: its own, else that of the global
// sections before it, else fio's default. Reads and writes may differ.
func blockOf(sections []Section, at int) (int64, error) {
	here := append(slices.Clone(sections[:at]), Section{Name: "here", Options: sections[at].Options})
	jobs := FileJobs(here)
	options := jobs[len(jobs)-1].Options
	for _, several := range []string{"bsrange", "bssplit"} {
		if options[several] != "" {
			return 0, fmt.Errorf("its blocks are of several sizes, %s=%s", several, option.Shorten(options[several]))
		}
	}
	block := int64(1)
	for word := range strings.SplitSeq(cmp.Or(options["bs"], "4k"), ",") {
		if word == "" {
			continue
		}
		bs, err := ParseFioSize(word)
		if err != nil {
			return 0, err
		}
		block = max(block, bs)
	}
	return block, nil
}
