package plan

import "github.com/goccy/go-yaml/ast"

func (r *reading) storage(node ast.Node) *Storage {
	s := DefaultsOfStorage()
	if _, null := node.(*ast.NullNode); null {
		return &s // all defaults
	}
	at := places{}
	r.fields("storage", node, []field{
		{name: "title", read: func(n ast.Node) { set(at, "title", n, &s.Title, r.text) }},
		{name: "targets", read: func(n ast.Node) { setList(r, at, "targets", n, &s.Targets, r.text) }},
		{name: "missing", read: func(n ast.Node) { set(at, "missing", n, &s.Missing, r.missing) }},
		{name: "via", read: func(n ast.Node) { setSome(r, at, "via", n, &s.Via) }},
		{name: "engines", read: func(n ast.Node) { s.Engines = r.engines(at, n) }},
		{name: "volumes", read: func(n ast.Node) { setList(r, at, "volumes", n, &s.Volumes, r.text) }},
		{name: "cache", read: func(n ast.Node) { setList(r, at, "cache", n, &s.Cache, r.text) }},
		{name: "jobs", read: func(n ast.Node) { r.jobs(at, n, &s.Jobs) }},
		{name: "scale", read: func(n ast.Node) { set(at, "scale", n, &s.Scale, r.scale) }},
		{name: "rounds", read: func(n ast.Node) { set(at, "rounds", n, &s.Rounds, r.whole) }},
		{name: "runtime_limit", read: func(n ast.Node) { set(at, "runtime_limit", n, &s.RuntimeLimit, r.duration) }},
		{name: "ceiling", read: func(n ast.Node) { set(at, "ceiling", n, &s.Ceiling, r.duration) }},
		{name: "settle", read: func(n ast.Node) { set(at, "settle", n, &s.Settle, r.duration) }},
		{name: "drop", read: func(n ast.Node) { set(at, "drop", n, &s.Drop, r.drop) }},
		{name: "budget", read: func(n ast.Node) { set(at, "budget", n, &s.Budget, r.duration) }},
		{name: "timeout", read: func(n ast.Node) { set(at, "timeout", n, &s.Timeout, r.duration) }},
		{name: "seed", read: func(n ast.Node) { set(at, "seed", n, &s.Seed, r.seed) }},
		{name: "limits", read: func(n ast.Node) { r.limits(at, n, &s.Limits) }},
		{name: "i_know_this_destroys", empty: true, hidden: true, read: r.noConsent},
		{name: "root", read: func(n ast.Node) { set(at, "root", n, &s.Root, r.text) }},
		{name: "programs", read: func(n ast.Node) { s.Programs, at["programs"] = r.texts("programs", n), []place{placeOf(n)} }},
	})
	if len(s.Programs) == 0 {
		s.Programs = nil
	}
	for _, c := range s.plainComplaints() {
		r.report(at.of(c, placeOf(node)), "%s", c.Error())
	}
	return &s
}

// noConsent refuses what only whoever starts a run can say: a plan is passed on,
// and what is called /dev/vdb on one machine is another disk on the next.
func (r *reading) noConsent(node ast.Node) {
	r.report(placeOf(node), "i_know_this_destroys: a plan cannot give a device away: take the line out, and name the device when it is run, --i-know-this-destroys /dev/NAME")
}

func (r *reading) drop(what string, node ast.Node) (Drop, bool) {
	s, ok := r.text(what, node)
	return Drop(s), ok
}

func (r *reading) scale(what string, node ast.Node) (float64, bool) {
	return scalar(r, what, node, ParseScale)
}

func (r *reading) size(what string, node ast.Node) (int64, bool) {
	return scalar(r, what, node, ParseSize)
}

func (r *reading) boolean(what string, node ast.Node) (bool, bool) {
	if b, ok := node.(*ast.BoolNode); ok {
		return b.Value, true
	}
	r.report(placeOf(node), "%s: %s is neither true nor false", what, describe(node))
	return false, false
}

// jobs reads a list of jobs, each by its name or with all its fields. The places
// of a job's fields are kept under its number in the list.
func (r *reading) jobs(at places, node ast.Node, into *[]Job) {
	before := len(r.mistakes)
	values, where := []Job{}, []place{placeOf(node)}
	r.items("jobs", node, func(item ast.Node) {
		own := places{}
		j, ok := r.job(own, item)
		if !ok {
			return
		}
		for name, places := range own {
			at[partKey("jobs", len(values), name)] = places
		}
		values, where = append(values, j), append(where, placeOf(item))
	})
	if len(values) > 0 || len(r.mistakes) == before {
		*into, at["jobs"] = values, where
	}
}

// job is not ok where something in it could not be read: what is missing then
// would be reported once more.
func (r *reading) job(at places, node ast.Node) (Job, bool) {
	if _, fields := node.(ast.MapNode); !fields {
		return scalar(r, "jobs", node, parseJob)
	}
	before := len(r.mistakes)
	j := Job{Tool: ToolFio}
	r.fields("a job", node, []field{
		{name: "name", read: func(n ast.Node) { set(at, "name", n, &j.Name, r.text) }},
		{name: "tool", read: func(n ast.Node) { set(at, "tool", n, &j.Tool, r.text) }},
		{name: "rw", read: func(n ast.Node) { set(at, "rw", n, &j.RW, r.text) }},
		{name: "bs", read: func(n ast.Node) { set(at, "bs", n, &j.BS, r.size) }},
		{name: "size", read: func(n ast.Node) { set(at, "size", n, &j.Size, r.size) }},
		{name: "file_size", read: func(n ast.Node) { set(at, "file_size", n, &j.FileSize, r.size) }},
		{name: "count", read: func(n ast.Node) { set(at, "count", n, &j.Count, r.whole64) }},
		{name: "files", read: func(n ast.Node) { set(at, "files", n, &j.Files, r.whole) }},
		{name: "num_jobs", read: func(n ast.Node) { set(at, "num_jobs", n, &j.NumJobs, r.whole) }},
		{name: "io_depth", read: func(n ast.Node) { set(at, "io_depth", n, &j.IODepth, r.whole) }},
		{name: "engine", read: func(n ast.Node) { set(at, "engine", n, &j.Engine, r.text) }},
		{name: "requests", read: func(n ast.Node) { set(at, "requests", n, &j.Requests, r.whole64) }},
		{name: "fsync", read: func(n ast.Node) { set(at, "fsync", n, &j.Fsync, r.whole) }},
		{name: "end_fsync", read: func(n ast.Node) { set(at, "end_fsync", n, &j.EndFsync, r.boolean) }},
		{name: "runtime", read: func(n ast.Node) { set(at, "runtime", n, &j.Runtime, r.duration) }},
		{name: "time_based", read: func(n ast.Node) { set(at, "time_based", n, &j.TimeBased, r.boolean) }},
		{name: "caches", read: func(n ast.Node) { setSome(r, at, "caches", n, &j.Caches) }},
		{name: "volumes", read: func(n ast.Node) { setSome(r, at, "volumes", n, &j.Volumes) }},
		{name: "options", read: func(n ast.Node) { j.Options, at["options"] = r.sections(n), []place{placeOf(n)} }},
	})
	if j.Name == "" && len(j.Options) == 0 {
		j.Name = nameOf(&j)
	}
	return j, len(r.mistakes) == before
}

// sections of an empty list are none.
func (r *reading) sections(node ast.Node) (all []Section) {
	r.items("options", node, func(item ast.Node) {
		s := Section{Options: []Option{}}
		r.fields("a section of options", item, []field{
			{name: "name", read: func(n ast.Node) { s.Name, _ = r.text("name", n) }},
			{name: "options", empty: true, read: func(n ast.Node) { s.Options = r.options(n) }},
		})
		all = append(all, s)
	})
	return all
}

func (r *reading) options(node ast.Node) []Option {
	all := []Option{}
	if _, null := node.(*ast.NullNode); null {
		return all
	}
	r.items("options", node, func(item ast.Node) {
		var o Option
		r.fields("an option", item, []field{
			{name: "name", read: func(n ast.Node) { o.Name, _ = r.text("name", n) }},
			{name: "value", read: func(n ast.Node) { o.Value, _ = scalar(r, "value", n, func(s string) (string, error) { return s, nil }) }},
		})
		all = append(all, o)
	})
	return all
}
