package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Sort is what sandboxes are in the order of.
type Sort string

// The orders. All but that of names begin with the largest, and what is not
// known comes last in each.
const (
	SortMemory   Sort = "memory"
	SortCPU      Sort = "cpu"
	SortOverhead Sort = "overhead" // outside the pod's group, and beside
	SortCache    Sort = "cache"
	SortIO       Sort = "io"
	SortName     Sort = "name"
)

// sorts are all of them.
var sorts = []Sort{SortMemory, SortCPU, SortOverhead, SortCache, SortIO, SortName}

// ParseSort reads the value of a flag.
func ParseSort(text string) (Sort, error) {
	if s := Sort(text); slices.Contains(sorts, s) {
		return s, nil
	}
	return "", fmt.Errorf("%q is not an order: %s", text, strings.Trim(strings.ReplaceAll(fmt.Sprint(sorts), " ", ", "), "[]"))
}

// The engines and isolations that sandboxes are told by.
var (
	engines    = []string{"docker", "podman", "containerd", "cri-o", "isula", "kubernetes", "oci"}
	isolations = []string{"kata", "gvisor", "vm"}
)

// ParseEngine reads the value of a flag: an engine, an isolation, or both as
// ENGINE/ISOLATION, whatever the case; "" is any.
func ParseEngine(text string) (string, error) {
	name := strings.ToLower(text)
	engine, isolation, both := strings.Cut(name, "/")
	switch {
	case name == "", !both && (slices.Contains(engines, name) || slices.Contains(isolations, name)):
		return name, nil
	case both && slices.Contains(engines, engine) && slices.Contains(isolations, isolation):
		return name, nil
	}
	return "", fmt.Errorf("%q is no engine and no isolation: %s; %s; or both, as docker/kata",
		text, strings.Join(engines, ", "), strings.Join(isolations, ", "))
}

// Selection is which sandboxes are shown, and how.
type Selection struct {
	Sort    Sort // SortMemory where it is ""
	Reverse bool
	Filter  string // in a name, an id, a path of a cgroup or a process's name, whatever the case
	Engine  string // "docker", "kata", "docker/kata"
}

// of returns the sandboxes that are selected, in order.
func (l *Selection) of(all []Sandbox) []Sandbox {
	out := make([]Sandbox, 0, len(all))
	filter, engine := strings.ToLower(l.Filter), strings.ToLower(l.Engine)
	for i := range all {
		s := &all[i]
		if engine != "" && engine != s.Engine && engine != s.Isolation && engine != s.engine() {
			continue
		}
		if strings.Contains(s.text, filter) {
			out = append(out, *s)
		}
	}
	slices.SortStableFunc(out, func(a, b Sandbox) int { return cmp.Or(l.compare(&a, &b), strings.Compare(a.key, b.key)) })
	return out
}

// compare is by the figure that is asked for, largest first, and what is not known last
// in either direction.
func (l *Selection) compare(a, b *Sandbox) int {
	way := 1
	if l.Reverse {
		way = -1
	}
	byName := strings.Compare(a.Name, b.Name)
	if l.Sort == SortName {
		return way * byName
	}
	x, y := l.value(a), l.value(b)
	switch {
	case x.OK != y.OK && x.OK:
		return -1
	case x.OK != y.OK:
		return 1
	case x.OK:
		return cmp.Or(way*cmp.Compare(y.V, x.V), byName)
	}
	return byName
}

func (l *Selection) value(s *Sandbox) Maybe {
	switch l.Sort {
	case SortCPU:
		return s.CPU
	case SortIO:
		return s.io()
	case SortOverhead:
		return s.overhead()
	case SortCache:
		return s.Cache
	}
	return s.Memory
}

// order is what Sort stands for.
func (l *Selection) order() Sort { return cmp.Or(l.Sort, SortMemory) }
