package storage

import (
	"context"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

// sysbenchRuns is the duration of sysbench jobs without another limit.
const sysbenchRuns = 10 * time.Second

// Default jobs and block sizes of the tools: those of the published report.
var (
	usualJobs = map[string][]string{
		ToolFio: {"randread", "read", "randwrite", "write"}, ToolDD: {"write", "read"}, ToolSysbench: {"rndrw"},
	}
	usualBlocks = map[string]int64{ToolFio: defaultBlock, ToolDD: 4 << 10, ToolSysbench: 16 << 10}
)

// jobFlags define jobs on a command line.
type jobFlags struct {
	names   []string
	file    string
	size    int64
	bs      []int64
	numJobs int
	tool    string
}

func (f *jobFlags) declare(s *option.Set, o *Options) {
	*f = jobFlags{names: quickJobs, size: defaultFile, bs: []int64{defaultBlock}, numJobs: defaultNumJobs, tool: ToolFio}
	option.List(s, &f.names, "", "jobs: randread, read, randwrite, write, rndrw; plan for the jobs of the published report", option.Flag("jobs"))
	option.Text(s, &f.file, "", "fio job file, instead of --jobs", option.Flag("jobfile"))
	option.Var(s, &f.size, "", "total size of a job's files; fio then processes all of it (default: 256M, and fio runs for "+quickRun.String()+", or --runtime-limit; with --jobs plan, dd and sysbench 1G)", Size, option.Flag("size"), option.NoDefault)
	blocks := option.ListOf(Size)
	blocks.Format = func([]int64) string { return "512k" }
	option.Var(s, &f.bs, "", "block sizes: 512k,4k runs each job with both (default with dd 4k, with sysbench 16k)", blocks, option.Flag("bs"))
	option.Int(s, &f.numJobs, "", "number of threads, each running the whole job on the same file; dd has one", option.Flag("numjobs"))
	option.Text(s, &f.tool, "", "fio, dd or sysbench", option.Flag("tool"))
	s.Before(func(context.Context) error { return f.apply(s, o) })
}

// apply creates the jobs if one of their flags was given.
func (f *jobFlags) apply(s *option.Set, o *Options) error {
	asked := s.Given("jobs", "size", "bs", "numjobs", "tool")
	if s.Given("jobfile") {
		if asked {
			return option.WrongFlag("jobfile", "the file defines the jobs: leave out --jobs, --size, --bs, --numjobs and --tool")
		}
		job, err := ReadJobFile(f.file)
		if err != nil {
			return option.WrongFlag("jobfile", "%v", err)
		}
		o.Jobs = []Job{job}
		return nil
	}
	if !asked {
		return nil
	}
	published := slices.Equal(f.names, []string{"plan"})
	if published || !s.Given("jobs") && f.tool != ToolFio {
		f.names = usualJobs[f.tool]
	}
	if !s.Given("bs") {
		f.bs = []int64{usualBlocks[f.tool]}
	}
	if err := f.check(s.Given("numjobs")); err != nil {
		return err
	}
	o.Jobs = DefaultJobs(f.names, f.bs, f.tool, f.size, f.numJobs)
	switch limited := s.Given("runtime-limit"); {
	case f.tool == ToolSysbench && !limited:
		for i := range o.Jobs { // they have no requests and would never end
			o.Jobs[i].Runtime = sysbenchRuns
		}
	case f.tool == ToolFio && !published && !s.Given("size"):
		runs := quickRun
		if limited {
			runs = o.RuntimeLimit
		}
		o.Jobs = timed(DefaultJobs(f.names, f.bs, f.tool, quickFile, f.numJobs), runs)
	}
	return nil
}

// check rejects unknown tools and jobs, and invalid sizes of blocks. threads reports whether the
// number of threads was given.
func (f *jobFlags) check(threads bool) error {
	switch {
	case usualJobs[f.tool] == nil:
		return option.WrongFlag("tool", "unknown tool %s: the tools are fio, dd and sysbench", option.Quote(f.tool))
	case threads && f.numJobs < 1:
		return option.WrongFlag("numjobs", "invalid number of threads %d: write 1 or more", f.numJobs)
	case threads && f.numJobs > 1 && f.tool == ToolDD:
		return option.WrongFlag("numjobs", "dd has one thread, not %d: omit the flag, or use --tool fio", f.numJobs)
	}
	for _, name := range f.names {
		if jobNames[name] == "" {
			return option.WrongFlag("jobs", "%v", unknownJob(name))
		}
	}
	for i, bs := range f.bs {
		if err := blockError(bs); err != nil {
			return option.WrongFlag("bs", "%v", err)
		}
		if slices.Contains(f.bs[:i], bs) {
			return option.WrongFlag("bs", "%s is there twice: each size of block is measured once", FormatSize(bs))
		}
	}
	return nil
}
