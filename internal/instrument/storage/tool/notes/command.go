package notes

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/plan"
)

// command is a command line of a tool that stands in a text.
type command struct {
	job      plan.Job
	direct   bool
	mixed    bool   // it reads and writes
	prepare  bool   // sysbench's prepare
	text     string // as it stands there
	intro    string // what is said before it: "随机读："
	prompted bool   // typed at a prompt: what follows is its output
}

// prompts begin lines of consoles: "[root@node dir]# ", "root@node:~$ ",
// "sh-4.2# ", "/ # ", "$ ", and "+ " of a shell that is traced. The first group
// is a prompt that names a user and a machine.
var prompts = regexp.MustCompile(`^(\[[\w.-]{1,64}@[^\]]{1,120}\][#$%]|[\w.-]{1,64}@[\w.-]{1,64}:[^\s#$]{0,120}[#$])\s*|^(?:\w{0,4}sh-[\d.]{1,8}[#$]|[/~][\w./-]{0,80} [#$%]|[#$%+❯])\s+`)

// cutPrompt takes a prompt off a line. who is the prompt where it names a
// machine.
func cutPrompt(text string) (rest, who string, ok bool) {
	if !strings.ContainsAny(text, "#$%+❯") { // most lines, at no cost
		return text, "", false
	}
	m := prompts.FindStringSubmatch(text)
	if m == nil {
		return text, "", false
	}
	return text[len(m[0]):], m[1], true
}

// between separates a command from the words of a sentence around it.
var between = strings.NewReplacer("；", " ", "：", " ", "，", " ", "。", " ", "`", " ")

// parseCommand finds a tool's command in a line.
func parseCommand(text string) (command, bool) {
	if !strings.Contains(text, plan.ToolFio) && !strings.Contains(text, plan.ToolDD) && !strings.Contains(text, plan.ToolSysbench) {
		return command{}, false
	}
	rest, _, prompted := cutPrompt(text)
	plain := between.Replace(rest)
	for _, tool := range []string{plan.ToolFio, plan.ToolDD, plan.ToolSysbench} {
		at := programAt(plain, tool)
		if at < 0 {
			continue
		}
		words := split(plain[at:])
		c, ok := options[tool](words[1:])
		if !ok {
			continue
		}
		c.job.Tool, c.prompted = tool, prompted
		c.text = strings.TrimSpace(plain[at:])
		if verb := sysbenchVerb.FindStringIndex(c.text); tool == plan.ToolSysbench && verb != nil {
			c.text = c.text[:verb[1]] // what comes after it is not the command's
		}
		c.intro = introOf(plain[:at])
		return c, true
	}
	return command{}, false
}

// options read what follows a tool's name, and refuse what is no command of it.
var options = map[string]func(words []string) (command, bool){
	plan.ToolFio: fioOptions, plan.ToolDD: ddOptions, plan.ToolSysbench: sysbenchOptions,
}

// programAt is where a word is the tool, perhaps with the folder it lies in.
func programAt(text, tool string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], tool)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(tool)
		begin := strings.LastIndexAny(text[:i], " \t|;&(") + 1
		if end < len(text) && (text[end] == ' ' || text[end] == '\t') && (begin == i || text[i-1] == '/') {
			return begin
		}
		from = end
	}
}

// split makes words of a command line, as far as a shell's next command.
func split(text string) []string {
	var out []string
	for _, word := range strings.Fields(text) {
		cut, rest, more := strings.Cut(word, ";")
		if cut = strings.Trim(cut, `'"`); cut != "" && cut != "|" && cut != "&&" && cut != "||" && !strings.HasPrefix(cut, ">") && !strings.HasPrefix(cut, "2>") {
			out = append(out, cut)
		}
		if more && rest == "" || cut == "|" || cut == "&&" || cut == "||" {
			break
		}
	}
	return out
}

// introOf is what a line says of the command in it.
func introOf(text string) string {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "-*:$#"))
}

// pairs reads options: "-name=value", "--name=value", "--name value".
func pairs(words []string) map[string]string {
	all := map[string]string{}
	for i, word := range words {
		name := strings.TrimLeft(word, "-")
		if name == word {
			continue
		}
		name, value, has := strings.Cut(name, "=")
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		all[strings.ReplaceAll(name, "-", "_")] = strings.Trim(value, `'"`)
	}
	return all
}

func fioOptions(words []string) (command, bool) {
	if len(words) == 0 || !strings.HasPrefix(words[0], "-") && !strings.HasSuffix(words[0], ".fio") {
		return command{}, false
	}
	o := pairs(words)
	_, group := o["name"]
	_, file := o["filename"]
	if !group && !file && o["rw"] == "" && o["readwrite"] == "" && !strings.HasSuffix(words[len(words)-1], ".fio") {
		return command{}, false // "fio --version"
	}
	j := plan.Job{RW: o["rw"], Name: o["name"], Engine: o["ioengine"]}
	if j.RW == "" {
		j.RW = o["readwrite"]
	}
	if j.RW == "" && !strings.HasSuffix(words[len(words)-1], ".fio") {
		j.RW = "read" // its default
	}
	mixed := j.RW == "rw" || j.RW == "readwrite" || j.RW == "randrw"
	j.RW = fioRW(j.RW)
	j.BS, _ = size(first(o["bs"], o["blocksize"]), j.Tool)
	j.Size, _ = size(o["size"], j.Tool)
	j.FileSize, _ = size(o["filesize"], j.Tool)
	j.Files, j.NumJobs, j.IODepth = count(o["nrfiles"]), count(o["numjobs"]), count(o["iodepth"])
	j.Runtime = seconds(o["runtime"])
	_, j.TimeBased = o["time_based"]
	_, j.EndFsync = o["end_fsync"]
	return command{job: j, mixed: mixed, direct: o["direct"] == "1" || o["odirect"] == "1"}, true
}

// fioRW is what fio's rw is in a plan, which has no sequential mixture.
func fioRW(rw string) string {
	rw, _, _ = strings.Cut(rw, ":")
	switch rw {
	case "read", "write", "randread", "randwrite", "randrw":
		return rw
	}
	return ""
}

func ddOptions(words []string) (command, bool) {
	o := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		switch name {
		case "if", "of", "bs", "ibs", "obs", "count", "iflag", "oflag", "conv", "status", "skip", "seek":
			if ok {
				o[name] = value
			}
		}
	}
	if o["if"] == "" && o["of"] == "" {
		return command{}, false
	}
	j := plan.Job{RW: "write", Count: whole(o["count"])}
	if o["of"] == "/dev/null" {
		j.RW = "read"
	}
	j.BS, _ = size(o["bs"], plan.ToolDD)
	j.EndFsync = strings.Contains(o["conv"], "sync")
	return command{job: j, direct: strings.Contains(o["oflag"]+" "+o["iflag"], "direct")}, true
}

var sysbenchVerb = regexp.MustCompile(`\s(?:run|prepare)\b`)

// sysbenchModes are its modes as a plan calls them.
var sysbenchModes = map[string]string{"seqwr": "write", "seqrewr": "write", "seqrd": "read", "rndrd": "randread", "rndwr": "randwrite", "rndrw": "randrw"}

func sysbenchOptions(words []string) (command, bool) {
	verb := ""
	for i, word := range words {
		if word == "run" || word == "prepare" || word == "cleanup" {
			verb, words = word, words[:i]
			break
		}
	}
	o := pairs(words)
	if o["test"] != "fileio" && (len(words) == 0 || !contains(words, "fileio")) || verb == "" {
		return command{}, false
	}
	if verb == "cleanup" {
		return command{}, false
	}
	j := plan.Job{
		RW: sysbenchModes[o["file_test_mode"]], Files: count(o["file_num"]),
		NumJobs: count(first(o["threads"], o["num_threads"])), Requests: whole(first(o["events"], o["max_requests"])),
		Fsync: count(o["file_fsync_freq"]), Runtime: seconds(first(o["time"], o["max_time"])),
	}
	if verb == "prepare" {
		j.RW = "write"
	}
	j.Size, _ = size(o["file_total_size"], plan.ToolSysbench)
	j.BS, _ = size(o["file_block_size"], plan.ToolSysbench)
	return command{job: j, prepare: verb == "prepare", direct: strings.Contains(o["file_extra_flags"], "direct")}, true
}

// runtimeOf is the runtime of a command that starts a container: "kata" of
// "ctr run --runtime io.containerd.kata.v2 …", runc where it names none.
func runtimeOf(text string) (runtime string, ok bool) {
	if !strings.Contains(text, "run") {
		return "", false
	}
	rest, _, _ := cutPrompt(text)
	words := split(rest)
	if len(words) > 0 && words[0] == "sudo" {
		words = words[1:]
	}
	if len(words) < 3 || !contains(words, "run") {
		return "", false
	}
	switch program := path.Base(words[0]); program {
	case "ctr", "docker", "podman", "nerdctl":
		if runtime = runtimeName(pairs(words)["runtime"]); runtime == "" {
			runtime = "runc" // containerd's and docker's default
		}
		return runtime, true
	case "runc", "crun", "runsc", "youki", "kata-runtime":
		return runtimeName(program), true
	}
	return "", false
}

var shimVersion = regexp.MustCompile(`\.v\d+$`)

// runtimeName shortens what containerd calls a runtime: io.containerd.kata.v2.
func runtimeName(name string) string {
	name = strings.TrimPrefix(path.Base("/"+name), "/")
	name = shimVersion.ReplaceAllString(strings.TrimPrefix(name, "io.containerd."), "")
	name = strings.TrimPrefix(strings.TrimSuffix(name, "-runtime"), "run.")
	if len(name) > 40 || !targetName.MatchString(name) {
		return ""
	}
	return name
}

func seconds(text string) time.Duration {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d
	}
	if n := whole(text); n > 0 && n < int64(1000*24*time.Hour/time.Second) {
		return time.Duration(n) * time.Second
	}
	return 0
}

func count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}
