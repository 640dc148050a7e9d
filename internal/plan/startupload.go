package plan

import "github.com/goccy/go-yaml/ast"

func (r *reading) startup(node ast.Node) *Startup {
	s := DefaultsOfStartup()
	if _, null := node.(*ast.NullNode); null {
		return &s // all defaults
	}
	at := places{}
	r.fields("startup", node, []field{
		{name: "title", read: func(n ast.Node) { set(at, "title", n, &s.Title, r.text) }},
		{name: "targets", read: func(n ast.Node) { setList(r, at, "targets", n, &s.Targets, r.text) }},
		{name: "missing", read: func(n ast.Node) { set(at, "missing", n, &s.Missing, r.missing) }},
		{name: "via", read: func(n ast.Node) { setSome(r, at, "via", n, &s.Via) }},
		{name: "engines", read: func(n ast.Node) { s.Engines = r.engines(at, n) }},
		{name: "commands", read: func(n ast.Node) { s.Commands = r.commands(at, n) }},
		{name: "rounds", read: func(n ast.Node) { set(at, "rounds", n, &s.Rounds, r.whole) }},
		{name: "warmup", read: func(n ast.Node) { set(at, "warmup", n, &s.Warmup, r.whole) }},
		{name: "untraced", read: func(n ast.Node) { set(at, "untraced", n, &s.Untraced, r.boolean) }},
		{name: "budget", read: func(n ast.Node) { set(at, "budget", n, &s.Budget, r.duration) }},
		{name: "timeout", read: func(n ast.Node) { set(at, "timeout", n, &s.Timeout, r.duration) }},
		{name: "seed", read: func(n ast.Node) { set(at, "seed", n, &s.Seed, r.seed) }},
		{name: "limits", read: func(n ast.Node) { r.limits(at, n, &s.Limits) }},
	})
	for _, c := range s.complaints() {
		r.report(at.of(c, placeOf(node)), "%s", c.Error())
	}
	return &s
}

// commands reads a list of commands. The places of one's fields are kept under
// its number in the list.
func (r *reading) commands(at places, node ast.Node) (all []StartCommand) {
	at["commands"] = []place{placeOf(node)}
	r.items("commands", node, func(item ast.Node) {
		var c StartCommand
		own := places{}
		r.fields("a command", item, []field{
			{name: "name", read: func(n ast.Node) { set(own, "name", n, &c.Name, r.text) }},
			{name: "args", read: func(n ast.Node) { setList(r, own, "args", n, &c.Args, r.word) }},
		})
		for name, places := range own {
			at[partKey("commands", len(all), name)] = places
		}
		all, at["commands"] = append(all, c), append(at["commands"], placeOf(item))
	})
	return all
}

// word takes what YAML would have for a number or a truth value as it is written.
func (r *reading) word(what string, node ast.Node) (string, bool) {
	return scalar(r, what, node, func(s string) (string, error) { return s, nil })
}
