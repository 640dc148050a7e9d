package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// Sort is a sort order of sandboxes.
type Sort string

// Sort orders. All except SortName are descending. Unknown figures are always last.
const (
	SortMemory   Sort = "memory"
	SortCPU      Sort = "cpu"
	SortOverhead Sort = "overhead" // MemoryOutside plus memory of processes charged to shared groups
	SortCache    Sort = "cache"
	SortIO       Sort = "io"
	SortName     Sort = "name"
)

var sorts = []Sort{SortMemory, SortCPU, SortOverhead, SortCache, SortIO, SortName}

// ParseSort parses the value of a flag.
func ParseSort(text string) (Sort, error) {
	if s := Sort(text); slices.Contains(sorts, s) {
		return s, nil
	}
	return "", term.Unknown("sort order", text, strings.Fields(strings.Trim(fmt.Sprint(sorts), "[]")))
}

// Engines and isolations of sandboxes.
var (
	engines    = []string{"docker", "podman", "containerd", "cri-o", "isula", "kubernetes", "oci"}
	isolations = []string{"kata", "gvisor", "vm"}
)

// ParseEngine parses the value of a flag: an engine, an isolation, or ENGINE/ISOLATION, in any
// case; "" is any.
func ParseEngine(text string) (string, error) {
	name := strings.ToLower(text)
	engine, isolation, both := strings.Cut(name, "/")
	switch {
	case name == "", !both && (slices.Contains(engines, name) || slices.Contains(isolations, name)):
		return name, nil
	case both && slices.Contains(engines, engine) && slices.Contains(isolations, isolation):
		return name, nil
	}
	return "", fmt.Errorf("unknown engine or isolation %q (supported: %s; %s; or both, as docker/kata)",
		text, strings.Join(engines, ", "), strings.Join(isolations, ", "))
}

// Selection selects and sorts sandboxes.
type Selection struct {
	Sort    Sort // "" means SortMemory
	Reverse bool
	Columns []string // by name; empty: all that fit
	Filter  string   // part of a name, id, cgroup path or process name, in any case
	Engine  string   // "docker", "kata", "docker/kata"
}

// of returns the selected sandboxes in order.
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

// compare compares by the sort order, largest first. Unknown figures are last in both
// directions.
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

// order returns Sort or its default.
func (l *Selection) order() Sort { return cmp.Or(l.Sort, SortMemory) }
