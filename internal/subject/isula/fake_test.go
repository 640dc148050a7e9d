package isula

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/must"
)

// fakeEnv makes this binary a fake isula that replays recorded answers. Its value is the
// folder of the containers. A file answer-VERB there contains the name of the recording for
// that verb.
const fakeEnv = "ISULAD_FAKE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeEnv); dir != "" {
		os.Exit(fake{dir}.run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

type fake struct{ dir string }

// newFake returns an engine with the fake command line.
func newFake(t *testing.T) (fake, subject.Engine) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	data, err2 := filepath.Abs("testdata")
	must.OK(t, errors.Join(err, err2,
		os.Mkdir(filepath.Join(dir, "containers"), 0o755), os.Symlink(data, filepath.Join(dir, "testdata")),
		os.Symlink(self, filepath.Join(dir, "isula")), os.WriteFile(filepath.Join(dir, "probe"), probe.Program(), 0o755)))
	return fake{dir}, subject.Engine{
		Command: filepath.Join(dir, "isula"), Address: filepath.Join(dir, "isulad.sock"), // By default the race detector delays the exit by a second.
		Env: map[string]string{fakeEnv: dir, "GORACE": "atexit_sleep_ms=0"},
	}
}

// answers sets the recording for a verb. "" restores the answers of the fake.
func (f fake) answers(t *testing.T, verb, recording string) {
	t.Helper()
	file := filepath.Join(f.dir, "answer-"+verb)
	err := os.WriteFile(file, []byte(recording), 0o644)
	if recording == "" {
		err = os.Remove(file)
	}
	must.OK(t, err)
}

// is configures the fake with a file. The file "log-driver" has the log driver of the
// daemon, and "log-driver-info" has the driver that info reports. The file "without" has
// an option that is missing in the help of create.
func (f fake) is(t *testing.T, what, how string) {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(f.dir, what), []byte(how), 0o644))
}

// recording is a recorded command with its answer.
type recording struct {
	stdout, stderr string
	exit           int
}

func recorded(folder, name string) (recording, error) {
	b, err := os.ReadFile(filepath.Join(folder, name+".txt"))
	if err != nil {
		return recording{}, err
	}
	head, rest, ok1 := strings.Cut(string(b), "\n--- stdout\n")
	stdout, stderr, ok2 := strings.Cut(rest, "--- stderr\n")
	_, exit, ok3 := strings.Cut(head, "\nexit ")
	code, err := strconv.Atoi(strings.TrimSpace(exit))
	if !ok1 || !ok2 || !ok3 || err != nil {
		return recording{}, fmt.Errorf("%s is not a recording", name)
	}
	return recording{strings.TrimSuffix(stdout, "\n"), stderr, code}, nil
}

// play prints a recording with some words replaced.
func (f fake) play(name string, oldnew ...string) int {
	r, err := recorded(filepath.Join(f.dir, "testdata"), name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	with := strings.NewReplacer(oldnew...)
	fmt.Fprint(os.Stdout, with.Replace(r.stdout))
	fmt.Fprint(os.Stderr, with.Replace(r.stderr))
	return r.exit
}

// kept is a container of the fake.
type kept struct {
	ID, Name, Runtime, Label string
	Driver                   string // log driver
	Status                   string
	Pid, Exit                int
}

func (f fake) file(name string) string { return filepath.Join(f.dir, "containers", name) }

func (f fake) load(name string) (kept, bool) {
	var c kept
	b, err := os.ReadFile(f.file(name))
	return c, err == nil && json.Unmarshal(b, &c) == nil
}

func (f fake) save(c kept) {
	b, _ := json.Marshal(c)
	temporary := filepath.Join(f.dir, "."+c.Name)
	if err := errors.Join(os.WriteFile(temporary, b, 0o644), os.Rename(temporary, f.file(c.Name))); err != nil {
		panic(err)
	}
}

// These are the container and the paths of the recordings.
const (
	recordedID   = "2e66b5e77a957ffcf469ba2c3f360fadbd89a759891c20a39833e4df9126e833"
	recordedName = "ta-1"
	recordedRoot = "/opt/isulad/lib"
)

// withValue contains the options with a value. --help only has the names.
var withValue = map[string]bool{
	"name": true, "label": true, "net": true, "runtime": true, "pull": true, "memory": true, "pids-limit": true,
	"cpu-shares": true, "log-driver": true, "host": true, "filter": true, "format": true, "volume": true, "cpu-quota": true, "tmpfs": true, "device": true, "cpu-period": true, "time": true, "input": true,
}

var short = map[string]string{"H": "host", "d": "detach", "f": "force", "a": "all", "t": "time", "i": "input", "n": "name"}

func (f fake) run(args []string) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		fmt.Fprintf(os.Stderr, "unknown command %q\n", args)
		return 1
	}
	verb := args[0]
	if b, err := os.ReadFile(filepath.Join(f.dir, "answer-"+verb)); err == nil {
		if string(b) == "hang" {
			time.Sleep(time.Minute)
		}
		return f.play(string(b))
	}
	options, rest, bad := parse(f.known(verb), args[1:])
	if bad != "" {
		return f.play("badflag", "--nosuchflag", bad)
	}
	switch verb {
	case "version", "info", "images":
		return f.tell(verb)
	case "load":
		code := f.importImage(options["input"][0])
		if _, err := os.Stat(filepath.Join(f.dir, "load-breaks")); err == nil { // after the daemon has the image
			return 1
		}
		return code
	case "rmi":
		_ = os.Remove(filepath.Join(f.dir, "image"))
		return 0
	case "create", "run":
		if options["help"] != nil {
			b, _ := os.ReadFile(filepath.Join(f.dir, "testdata", "help-"+verb+".txt"))
			without, _ := os.ReadFile(filepath.Join(f.dir, "without"))
			for line := range strings.Lines(string(b)) {
				if len(without) == 0 || !strings.Contains(line, string(without)) {
					fmt.Print(line)
				}
			}
			return 0
		}
		return f.create(verb, options, rest)
	case "ps":
		return f.list(options)
	case "exec":
		return f.exec(rest)
	case "stats":
		return f.stats(options, rest)
	case "inspect":
		return f.inspect(rest)
	}
	code := 0
	for _, name := range rest {
		code = max(code, f.act(verb, name))
	}
	return code
}

// known returns the options in the help of a verb, or nil without a recording.
func (f fake) known(verb string) []string {
	b, err := os.ReadFile(filepath.Join(f.dir, "testdata", "help-"+verb+".txt"))
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^\s+(?:-., )?--([a-z-]+)`).FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	return out
}

// parse stops at the first argument that is not an option, like isula in create and run.
func parse(known, args []string) (options map[string][]string, rest []string, bad string) {
	options = map[string][]string{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, isLong := strings.CutPrefix(args[0], "--")
		if !isLong {
			name = short[strings.TrimPrefix(args[0], "-")]
		}
		if name == "" || known != nil && !slices.Contains(known, name) {
			return nil, nil, args[0]
		}
		args = args[1:]
		value := ""
		if withValue[name] {
			value, args = args[0], args[1:]
		}
		options[name] = append(options[name], value)
	}
	return options, args, ""
}

func (f fake) tell(verb string) int {
	ref, err := os.ReadFile(filepath.Join(f.dir, "image"))
	if verb == "images" && err == nil {
		repository, tag, _ := strings.Cut(string(ref), ":")
		return f.play(verb, "tare.local/app                 1    ", fmt.Sprintf("%-30s %s", repository, tag))
	}
	if driver, err := os.ReadFile(filepath.Join(f.dir, "log-driver-info")); verb == "info" && err == nil {
		return f.play(verb, "Logging Driver: json-file", "Logging Driver: "+string(driver))
	}
	return f.play(verb)
}

func (f fake) importImage(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "File %s is not exist\n", file)
		return 1
	}
	ref := regexp.MustCompile(`"RepoTags":\["([^"]+)"\]`).FindSubmatch(b)
	if ref == nil || os.WriteFile(filepath.Join(f.dir, "image"), ref[1], 0o644) != nil {
		return 99
	}
	return f.play("load", "/opt/images/app.tar", file)
}

func (f fake) create(verb string, options map[string][]string, rest []string) int {
	name := options["name"][0]
	ref, _ := os.ReadFile(filepath.Join(f.dir, "image"))
	if len(name) < 2 || len(rest) != 2 || rest[0] != string(ref) || options["pull"][0] != "never" || options["net"][0] != "none" {
		fmt.Fprintf(os.Stderr, "unexpected: %q %q\n", options, rest)
		return 98
	}
	if _, there := f.load(name); there {
		return f.play("create-duplicate", recordedName, name)
	}
	sum := sha256.Sum256([]byte(f.dir + name))
	c := kept{ID: hex.EncodeToString(sum[:]), Name: name, Runtime: "runc", Label: options["label"][0], Status: "inited"}
	if r := options["runtime"]; r != nil {
		c.Runtime = r[0]
	}
	b, _ := os.ReadFile(filepath.Join(f.dir, "log-driver"))
	if c.Driver = string(b); options["log-driver"] != nil {
		c.Driver = options["log-driver"][0]
	}
	f.save(c)
	if verb == "create" {
		return f.play("create", recordedID, c.ID)
	}
	f.start(c)
	return f.play("run", "d693b315389cafbbf909a17ae1c9c061988516b4e4597ab8049bbdd1b8c5bec1", c.ID)
}

// exec runs a program of the host, or the probe. The error for a missing program has the
// format of isulad. Its reason is made up.
func (f fake) exec(rest []string) int {
	c, ok := f.load(rest[0])
	if !ok || c.Status != "running" {
		fmt.Fprintf(os.Stderr, "Error response from daemon: No such container:%s\n", rest[0])
		return 1
	}
	program := rest[1]
	if program == "/probe" {
		program = filepath.Join(f.dir, "probe")
	}
	cmd := exec.Command(program, rest[2:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "Error response from daemon: Exec container error;%v\n", err)
		return 126
	}
	if status, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// stats prints the recorded row for every container.
func (f fake) stats(options map[string][]string, names []string) int {
	r, err := recorded(filepath.Join(f.dir, "testdata"), "stats")
	lines := slices.Collect(strings.Lines(r.stdout))
	if err != nil || len(lines) != 2 || options["no-stream"] == nil {
		return 99
	}
	fmt.Print(lines[0])
	for _, name := range names {
		c, ok := f.load(name)
		if !ok {
			return 1
		}
		fmt.Print(strings.Replace(lines[1], recordedID[:12], c.ID[:12], 1))
	}
	return 0
}

func (f fake) log(c kept) string {
	return filepath.Join(f.dir, "engines", "runc", c.ID, "console.log")
}

// start runs the workload. With the driver json-file it stores the output. Other drivers
// store nothing.
func (f fake) start(c kept) {
	cmd := exec.Command(filepath.Join(f.dir, "probe"), c.Name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		panic(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	if c.Driver == "syslog" {
		said = ""
	}
	line, _ := json.Marshal(map[string]string{"log": said, "stream": "stdout", "time": "2026-11-21T03:35:23.460000000Z"})
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.log(c)), 0o755), os.WriteFile(f.log(c), append(line, '\n'), 0o644)); err != nil {
		panic(err)
	}
	c.Status, c.Pid = "running", cmd.Process.Pid
	if _, err := os.Stat(filepath.Join(f.dir, "dies")); err == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c.Status, c.Pid, c.Exit = "exited", 0, 137
	}
	f.save(c)
}

func (f fake) end(c kept, signal unix.Signal) {
	if c.Pid != 0 {
		_ = unix.Kill(c.Pid, signal)
		engine.Ended(c.Pid, 5*time.Second)
	}
	if c.Status == "running" {
		c.Status, c.Pid, c.Exit = "exited", 0, 0
	}
	f.save(c)
}

func (f fake) list(options map[string][]string) int {
	if options["all"] == nil || len(options["format"]) != 1 || options["format"][0] != "{{.Names}}" {
		return 97
	}
	files, _ := os.ReadDir(filepath.Join(f.dir, "containers"))
	for _, file := range files {
		c, ok := f.load(file.Name())
		if filter := options["filter"]; ok && (filter == nil || filter[0] == "label="+c.Label) {
			fmt.Printf("%-60s\n", c.Name) // padded like in the recording ps-format
		}
	}
	return 0
}

func (f fake) inspect(names []string) int {
	var all []string
	for _, name := range names {
		c, ok := f.load(name)
		if !ok {
			fmt.Fprintf(os.Stderr, "Error response from daemon: No such image or container or accelerator:%s\nInspect error: No such object:%s\n", name, name)
			return 1
		}
		from := "inspect"
		if c.Status == "exited" {
			from = "inspect-stopped"
		}
		r, err := recorded(filepath.Join(f.dir, "testdata"), from)
		if err != nil {
			return 99
		}
		text := strings.NewReplacer(recordedID, c.ID, recordedName, c.Name, recordedRoot, f.dir,
			`"Pid": 8005`, fmt.Sprintf(`"Pid": %d`, c.Pid), `"ExitCode": 0`, fmt.Sprintf(`"ExitCode": %d`, c.Exit),
			`"Runtime": "runc"`, fmt.Sprintf(`"Runtime": %q`, c.Runtime)).Replace(r.stdout)
		if c.Status == "inited" {
			text = strings.NewReplacer(`"Status": "running"`, `"Status": "inited"`, `"Running": true`, `"Running": false`).Replace(text)
		}
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "[\n"), "\n]"))
	}
	fmt.Printf("[\n%s\n]\n", strings.Join(all, ",\n"))
	return 0
}

// act performs start, stop or rm on one container.
func (f fake) act(verb, name string) int {
	c, ok := f.load(name)
	switch {
	case !ok && verb == "start":
		return f.play("start-missing", "nosuch", name)
	case !ok:
		return f.play("rm-missing", recordedName, name)
	case verb == "start" && c.Status == "running":
		return f.play("start-again")
	case verb == "start":
		f.start(c)
		return f.play("start")
	case verb == "stop":
		f.end(c, unix.SIGTERM)
		return f.play("stop", recordedName, name)
	case verb == "rm":
		f.end(c, unix.SIGKILL)
		_ = os.Remove(f.file(name))
		return f.play("rm", recordedID, c.ID)
	}
	return 96
}
