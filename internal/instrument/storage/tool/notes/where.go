package notes

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// maxCommands is how many commands of one section are remembered.
const maxCommands = 64

// where is what a text has said so far of whatever comes next.
type where struct {
	label    string // a line "kata:"
	prompted string // the target that prompts and container commands tell
	outside  string // the prompt at which containers were started: the host's
	remark   remark // "--direct=1:", "nfs:"
	tool     string // that a heading names: "## dd"
	intro    string // the last line that was nothing else
	// commands are those of the section; since counts those that came after the
	// last result and answer for what follows.
	commands []command
	begin    int // the first of commands that is not done with
	next     int // from begin, the one that comes next
	used     bool
}

// remark is what a line says of the figures that follow it.
type remark struct {
	volume, cache string
	used          bool
}

// targetName is what a label, a file's name or a runtime may be.
var targetName = regexp.MustCompile(`^[\pL\pN][\pL\pN._/+-]{0,63}$`)

// labels are what people call the sides of a comparison. Those of the machine
// itself mean tare's own target host.
var labels = regexp.MustCompile(`(?i)^(?:[a-z0-9-]{1,20}/)?(kata(?:[-_][\w-]{1,20})?|runc|crun|runsc|gvisor|youki|firecracker|floor|docker|podman|containerd|cri-o|isula)$`)

var hostLabels = map[string]bool{"host": true, "物理机": true, "主机": true, "宿主机": true, "bare metal": true, "bare-metal": true, "baremetal": true, "native": true}

// labelOf is the target that a text names, in a line or in a table.
func labelOf(text string) (string, bool) {
	text = strings.ToLower(strings.Trim(strings.TrimSpace(text), "*_`# "))
	if hostLabels[text] {
		return "host", true
	}
	if labels.MatchString(text) {
		return text, true
	}
	return "", false
}

// labelLine reads a line that is only a label: "kata:".
func labelLine(text string) (string, bool) {
	text = strings.TrimRight(strings.Trim(text, "*_` "), " ")
	for _, colon := range []string{":", "："} {
		if name, ok := strings.CutSuffix(text, colon); ok {
			return labelOf(name)
		}
	}
	return "", false
}

var heading = regexp.MustCompile(`^#{1,6}\s+\S`)

// volumeRemark begins with where files lie: "nfs: node-3".
var volumeRemark = regexp.MustCompile(`(?i)^(rootfs|root|nfs|hostpath|bind|tmpfs)\s*[:：].{0,40}$`)

var directRemark = regexp.MustCompile(`(?i)\b(?:direct=([01])|[oi]flag=direct)\b`)

// remarkOf reads a short line that says how, and is no command.
func remarkOf(text string) (remark, bool) {
	if !short(text) {
		return remark{}, false
	}
	var r remark
	if m := volumeRemark.FindStringSubmatch(text); m != nil {
		r.volume = volumeOf(m[1])
	}
	if m := directRemark.FindStringSubmatch(text); m != nil {
		r.cache = record.CacheDirect
		if m[1] == "0" {
			r.cache = record.CacheBuffered
		}
	}
	return r, r != remark{}
}

// volumeOf is the kind of volume that a word means.
func volumeOf(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "rootfs", "root":
		return record.VolumeRootfs
	case "hostpath", "bind", "host path":
		return record.VolumeBind
	case "nfs":
		return record.VolumeNFS
	case "tmpfs", "shm", "/dev/shm":
		return record.VolumeTmpfs
	}
	return ""
}

// section forgets what was said in the one before.
func (w *where) section() {
	*w = where{outside: w.outside, prompted: w.prompted, tool: w.tool}
}

// heading takes notice of a tool that a heading names.
func (w *where) heading(text string) {
	for _, tool := range []string{plan.ToolFio, plan.ToolDD, plan.ToolSysbench} {
		if contains(strings.Fields(strings.ToLower(text)), tool) {
			w.tool = tool
		}
	}
}

func (w *where) setLabel(target string) {
	w.label, w.next = target, 0
}

// setRemark takes a remark. Those before the same figures belong together.
func (w *where) setRemark(r remark) {
	if !w.remark.used {
		r.volume, r.cache = first(r.volume, w.remark.volume), first(r.cache, w.remark.cache)
	}
	w.remark = r
}

// prompt takes notice of who types.
func (w *where) prompt(text string) {
	_, who, ok := cutPrompt(text)
	if runtime, run := runtimeOf(text); run {
		w.prompted = runtime
		if who != "" {
			w.outside = who
		}
		return
	}
	if ok && who != "" && (who == w.outside || w.outside == "" && strings.HasPrefix(who, "[")) {
		w.prompted = "host"
	}
}

// add takes a command that stands in the text.
func (w *where) add(c command) {
	if c.intro == "" && short(w.intro) {
		c.intro = w.intro
	}
	w.intro = ""
	if w.used || c.prompted {
		w.begin, w.next, w.used = len(w.commands), 0, false
	}
	if len(w.commands) == maxCommands {
		w.commands = append(w.commands[:0], w.commands[1:]...)
		w.begin = max(w.begin-1, 0)
	}
	w.commands = append(w.commands, c)
}

// take is the command that a result is of. Several commands before a result
// were noted together: their results have the same order, after every label.
func (w *where) take(fits func(command) bool) (c command, byOrder, ok bool) {
	open := w.commands[min(w.begin, len(w.commands)):]
	w.used = true
	if len(open) == 1 {
		return open[0], false, fits(open[0])
	}
	at := w.next
	w.next++
	if at < len(open) && fits(open[at]) {
		return open[at], true, true
	}
	var found []command
	for _, c := range open {
		if fits(c) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		w.next = at // it took no one's turn
		return found[0], false, true
	}
	return command{}, false, false
}

// target is whose a result is that stands here, "" if nothing says so.
func (w *where) target() string { return first(w.label, w.prompted) }

// cacheOf is what a command says of the page cache.
func cacheOf(c command) string {
	if c.direct {
		return record.CacheDirect
	}
	if c.job.Tool == plan.ToolFio && strings.HasSuffix(c.text, ".fio") {
		return "" // its job file says it
	}
	return record.CacheBuffered
}

// short says whether a line can be the introduction of a command.
func short(text string) bool { return utf8.RuneCountInString(text) <= 60 }
