package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Paths with a reported size on every target, as with df.
const (
	rootPath = "/"
	shmPath  = "/dev/shm"
)

// volumes describes each volume on each target. Targets with the same volume are merged.
func volumes(places []record.Place) *page.Section {
	var items []page.Item
	var texts, targets, advice grouped
	for i := range places {
		p := &places[i]
		text := placeText(p)
		texts.add(p.Volume, text)
		targets.add(p.Volume+" "+text, page.Heading(p.Target))
		advice.add(p.Volume+" "+text, p.Advice)
	}
	for _, name := range texts.keys {
		key := page.Heading(page.Known(name))
		for _, text := range texts.of[name] {
			at := name + " " + text
			items = append(items, page.Item{Key: key, Text: strings.Join(targets.of[at], ", ") + ": " + text})
			key = ""
			for _, say := range advice.of[at] {
				items = append(items, page.Item{Text: "→ " + clipped(say)})
			}
		}
	}
	if items == nil {
		return nil
	}
	return &page.Section{Title: "volumes", Style: term.Bold, Lists: []page.List{{Items: items}}}
}

func placeText(p *record.Place) string {
	if p.Absent != "" {
		return page.None + " " + clipped(p.Absent)
	}
	inside, size, hosts := "", "", with("", page.Heading(p.HostType), " on the host")
	if m := mountOf(p); m != nil {
		switch {
		case m.Problem != "":
			inside = clipped(m.Problem)
		case m.Type != "" && m.Type == p.HostType:
			inside, hosts = page.Heading(m.Type), ""
		case m.Type != "":
			inside = page.Heading(m.Type) + " inside"
		}
		if m.Size > 0 {
			size = room(float64(m.Size))
		}
	}
	parts := slices.DeleteFunc([]string{inside, hosts, with("device ", page.Heading(p.Device), ""), with("", page.Heading(p.Answers), " below it"),
		clipped(p.Memory), with("O_DIRECT ", page.Heading(p.Direct), ""), size}, func(part string) bool { return part == "" })
	return cmp.Or(strings.Join(parts, ", "), "unknown")
}

// with returns text between before and behind, or "" if text is empty.
func with(before, text, behind string) string {
	if text == "" {
		return ""
	}
	return before + text + behind
}

// mountOf returns the file system of the volume, or that of the root if the volume has no
// other.
func mountOf(p *record.Place) *record.FileSystem {
	var found *record.FileSystem
	for i := range p.Mounts {
		m := &p.Mounts[i]
		switch {
		case m.Path != rootPath && m.Path != shmPath:
			return m
		case m.Path == rootPath && p.Volume == record.VolumeRootfs:
			found = m
		}
	}
	return found
}

// sizes shows the sizes of / and /dev/shm, as df does.
func sizes(j *Judgement) *page.Section {
	s := &page.Section{Title: "sizes", Style: term.Bold, Table: page.Names("target")}
	all := fileSystems(j.Record.Places)
	at := func(quantity, target, path string) *figure.Figure {
		return all.Of("file-system-"+quantity, "target", target, "path", path)
	}
	targets := slices.DeleteFunc(slices.Clone(j.Targets), func(t record.Target) bool {
		return at("size", t.Name, rootPath).Quantity == "" && at("size", t.Name, shmPath).Quantity == ""
	})
	if len(targets) == 0 {
		return nil
	}
	for _, t := range targets {
		s.Table.Row(page.Words(page.Heading(t.Name)))
	}
	for _, path := range []string{rootPath, shmPath} {
		column := func(quantity string, show func(*figure.Figure) page.Cell) []page.Cell {
			return page.Each(targets, func(t *record.Target) page.Cell {
				switch f := at(quantity, t.Name, path); {
				case f.Quantity == "":
					return page.Words(page.Dot)
				case !f.Known():
					return page.Words(page.None)
				default:
					return show(f)
				}
			})
		}
		bytes := func(f *figure.Figure) page.Cell { return page.Value(f, room) }
		s.Table.Add(path, column("size", bytes))
		s.Table.Add("available", column("free", bytes))
		s.Table.AddText("type", column("size", func(f *figure.Figure) page.Cell { return page.Words(page.Heading(page.Known(f.Labels.Get("type")))) }))
		for _, t := range targets {
			if f := at("size", t.Name, path); f.Quantity != "" && !f.Known() {
				s.Notes = append(s.Notes, page.None+" "+path+" on "+page.Heading(t.Name)+": "+clipped(f.Reasons[0]))
			}
		}
	}
	return s
}

// endless is a size in bytes that no file system has. gVisor reports 10^18 for its own; NFS
// servers and others without a limit report as much or more.
const endless = 1 << 58

// room formats the size of a file system.
func room(bytes float64) string {
	if bytes >= endless {
		return "no limit"
	}
	return page.Size(bytes)
}

// fileSystems returns the figures of the file systems in each sandbox, or why they are unknown.
func fileSystems(places []record.Place) (all figure.Set) {
	for _, p := range places {
		for _, m := range p.Mounts {
			labels := figure.Of("volume", p.Volume, "target", p.Target, "path", m.Path, "type", m.Type)
			size, free := about("file-system-size", labels, nil), about("file-system-free", labels, nil)
			if m.Problem != "" {
				size.Reasons = []string{m.Problem}
			} else {
				size.Estimate, free.Estimate = figure.Exactly(float64(m.Size)), figure.Exactly(float64(m.Free))
			}
			all = append(all, size, free)
		}
	}
	return all
}

// ceilingColumns are the measured properties of a device.
var ceilingColumns = []struct {
	name      string // for use in a sentence
	title     string
	direction int
	quantity  string
	of        func(*record.Ceiling) *float64
	show      func(float64) string
}{
	{"read bandwidth", "read MB/s", reading, "ceiling-bandwidth", func(c *record.Ceiling) *float64 { return &c.Read }, page.Megabytes},
	{"write bandwidth", "write MB/s", writing, "ceiling-bandwidth", func(c *record.Ceiling) *float64 { return &c.Write }, page.Megabytes},
	{"read IOPS", "read IOPS", reading, "ceiling-iops", func(c *record.Ceiling) *float64 { return &c.ReadIOPS }, page.Significant},
	{"write IOPS", "write IOPS", writing, "ceiling-iops", func(c *record.Ceiling) *float64 { return &c.WriteIOPS }, page.Significant},
}

// ceilingFigures returns the figures of ceilingColumns.
func ceilingFigures(c *record.Ceiling) []figure.Figure {
	out := make([]figure.Figure, len(ceilingColumns))
	for i, x := range ceilingColumns {
		out[i] = about(x.quantity, figure.Of("volume", c.Volume, "device", c.Device, "direction", directionNames[x.direction]), nil)
		if v := *x.of(c); v != 0 {
			out[i].Estimate = figure.Exactly(v)
		}
	}
	return out
}

// devices shows the ceiling of each volume's device.
func devices(ceilings []record.Ceiling, o page.Options) *page.Section {
	if len(ceilings) == 0 {
		return nil
	}
	var rows []*record.Ceiling
	var volumes grouped // rows with equal figures
	var commands []page.Item
	same := func(c *record.Ceiling) string {
		return fmt.Sprintln(c.Device, c.Read, c.Write, c.ReadIOPS, c.WriteIOPS)
	}
	for i := range ceilings {
		c := &ceilings[i]
		if volumes.of[same(c)] == nil {
			rows = append(rows, c)
			if o.Verbose && c.Command != "" {
				commands = append(commands, page.Item{Key: page.Heading(c.Volume), Text: c.Command, Code: true})
			}
		}
		volumes.add(same(c), page.Heading(c.Volume))
	}
	s := &page.Section{Title: "device limits", Style: term.Bold, Table: page.Names("device", "volumes")}
	for _, c := range rows {
		s.Table.Row(page.Words(cmp.Or(page.Heading(c.Device), page.None)), page.Words(strings.Join(volumes.of[same(c)], ", ")))
	}
	for i, x := range ceilingColumns {
		s.Table.Add(x.title, page.Each(rows, func(c **record.Ceiling) page.Cell { return page.Value(&ceilingFigures(*c)[i], x.show) }))
	}
	if commands != nil {
		s.Lists = []page.List{{Items: commands}}
	}
	s.Notes = []string{"direct I/O on the host with many concurrent requests: MB/s with 1 MiB requests, IOPS with random 4 KiB requests; the best of before and after the rounds"}
	return s
}
