package report

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// The paths of which every target's size is told, as reports give it with df.
const (
	rootPath = "/"
	shmPath  = "/dev/shm"
)

// volumes says what each volume is on each target. Targets on which it is the
// same are named together.
func volumes(v *judge.Storage) *section {
	var items []item
	var names []string
	for i := range v.Places {
		if name := v.Places[i].Volume; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		var texts []string
		of := map[string][]string{}
		advice := map[string]string{}
		for i := range v.Places {
			p := &v.Places[i]
			if p.Volume != name {
				continue
			}
			text := placeText(p)
			if of[text] == nil {
				texts = append(texts, text)
			}
			if target := heading(p.Target); !slices.Contains(of[text], target) {
				of[text] = append(of[text], target)
			}
			if p.Advice != "" {
				advice[text] = p.Advice
			}
		}
		key := heading(known(name))
		for _, text := range texts {
			items = append(items, item{key: key, text: strings.Join(of[text], ", ") + ": " + text})
			key = ""
			if advice[text] != "" {
				items = append(items, item{text: "→ " + short(term.Clean(advice[text]), longestMessage)})
			}
		}
	}
	if items == nil {
		return nil
	}
	return &section{title: "volumes", style: term.Bold, lists: []list{{items: items}}}
}

func placeText(p *record.Place) string {
	if p.Absent != "" {
		return none + " " + short(term.Clean(p.Absent), longestMessage)
	}
	var parts []string
	m := mountOf(p)
	if m != nil {
		switch {
		case m.Problem != "":
			parts = append(parts, short(term.Clean(m.Problem), longestMessage))
		case m.Type != "" && m.Type == p.HostType:
			parts = append(parts, heading(m.Type))
		case m.Type != "":
			parts = append(parts, heading(m.Type)+" inside")
		}
	}
	if p.HostType != "" && (m == nil || m.Type != p.HostType) {
		parts = append(parts, heading(p.HostType)+" on the host")
	}
	if p.Device != "" {
		parts = append(parts, "device "+heading(p.Device))
	}
	if p.Direct != "" {
		parts = append(parts, "O_DIRECT "+heading(p.Direct))
	}
	if m != nil && m.Size > 0 {
		parts = append(parts, roomOf(m.Size))
	}
	if parts == nil {
		return "nothing is known of it"
	}
	return strings.Join(parts, ", ")
}

// mountOf is the file system of the volume itself: that of the root where the
// volume has no other.
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

// sizes are those of / and /dev/shm, as df shows them.
func sizes(v *judge.Storage) *section {
	m := &matrix{lead: []term.Column{{Title: "target"}}}
	var names []string
	for _, t := range v.Targets {
		if fileSystem(v, t.Name, rootPath) == nil && fileSystem(v, t.Name, shmPath) == nil {
			continue
		}
		names = append(names, t.Name)
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(heading(t.Name))}})
	}
	if names == nil {
		return nil
	}
	s := &section{title: "sizes", style: term.Bold}
	for _, path := range []string{rootPath, shmPath} {
		column := func(title string, of func(*record.FileSystem) string) {
			m.column(title, each(names, func(name *string) cell {
				f := fileSystem(v, *name, path)
				switch {
				case f == nil:
					return plain(dot)
				case f.Problem != "":
					return plain(none)
				}
				return plain(of(f))
			}))
		}
		column(path, func(f *record.FileSystem) string { return roomOf(f.Size) })
		column("available", func(f *record.FileSystem) string { return roomOf(f.Free) })
		column("type", func(f *record.FileSystem) string { return heading(known(f.Type)) })
		m.columns[len(m.columns)-1].Right = false
		for _, name := range names {
			if f := fileSystem(v, name, path); f != nil && f.Problem != "" {
				s.notes = append(s.notes, none+" "+path+" on "+heading(name)+": "+short(term.Clean(f.Problem), longestMessage))
			}
		}
	}
	s.table = m.spread()
	return s
}

// endless is more than file systems have, in bytes: gVisor gives its own as 10^18,
// NFS servers and others that have no bound give as much or more.
const endless = 1 << 58

// roomOf is a size of a file system.
func roomOf(bytes int64) string {
	if bytes >= endless {
		return "no limit"
	}
	return size(float64(bytes))
}

// fileSystem is what the first of a target's places says of a path.
func fileSystem(v *judge.Storage, target, path string) *record.FileSystem {
	for i := range v.Places {
		if v.Places[i].Target != target {
			continue
		}
		for j := range v.Places[i].Mounts {
			if m := &v.Places[i].Mounts[j]; m.Path == path {
				return m
			}
		}
	}
	return nil
}

func deviceName(c *record.Ceiling) string {
	if c.Device == "" {
		return none
	}
	return heading(c.Device)
}

// devices are the most that each volume's device gave.
func devices(v *judge.Storage, o Options) *section {
	if len(v.Ceilings) == 0 {
		return nil
	}
	s := &section{title: "what the devices give", style: term.Bold}
	var rows []*record.Ceiling
	of := map[*record.Ceiling][]string{}
	var commands []item
	for i := range v.Ceilings {
		c := &v.Ceilings[i]
		same := slices.IndexFunc(rows, func(r *record.Ceiling) bool {
			return r.Failure == nil && c.Failure == nil && r.Device == c.Device &&
				r.Read == c.Read && r.Write == c.Write && r.ReadIOPS == c.ReadIOPS && r.WriteIOPS == c.WriteIOPS
		})
		if same >= 0 {
			of[rows[same]] = append(of[rows[same]], heading(c.Volume))
			continue
		}
		rows = append(rows, c)
		of[c] = []string{heading(c.Volume)}
		if c.Failure != nil {
			commands = append(commands, failureItems(heading(c.Volume), "", c.Failure)...)
		} else if o.Verbose && c.Command != "" {
			commands = append(commands, item{key: heading(c.Volume), text: c.Command, code: true})
		}
	}
	m := &matrix{lead: []term.Column{{Title: "device"}, {Title: "volumes"}}}
	for _, c := range rows {
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(deviceName(c)), plain(strings.Join(of[c], ", "))}})
	}
	column := func(title string, value func(*record.Ceiling) float64, show func(float64) string) {
		m.column(title, each(rows, func(c **record.Ceiling) cell {
			if v := value(*c); v != 0 {
				return plain(show(v))
			}
			return plain(none)
		}))
	}
	column("read MB/s", func(c *record.Ceiling) float64 { return c.Read }, megabytes)
	column("write MB/s", func(c *record.Ceiling) float64 { return c.Write }, megabytes)
	column("read IOPS", func(c *record.Ceiling) float64 { return c.ReadIOPS }, significant)
	column("write IOPS", func(c *record.Ceiling) float64 { return c.WriteIOPS }, significant)
	s.table = m.spread()
	if commands != nil {
		s.lists = []list{{items: commands}}
	}
	s.notes = []string{"on the host, directly, with many requests at once: MB/s of 1 MiB requests, IOPS of 4 KiB requests at random; the best of before and after the rounds"}
	return s
}
