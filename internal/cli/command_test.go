package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// place creates folders for a test. At the end it checks that no process, cgroup, mount or
// folder of tare is left.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TARE_DATA_DIR", filepath.Join(dir, "data"))
	t.Setenv("TARE_STATE_DIR", filepath.Join(dir, "state"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "home"))
	t.Chdir(dir)
	var ids []string
	untouched.Check(t, dir, func() []string {
		records, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		for _, path := range records {
			if rec, err := record.Load(path); err == nil {
				ids = append(ids, rec.Header.RunID)
			}
		}
		return ids
	})
	return dir
}

// tare runs a command line in this process.
func tare(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Execute(t.Context(), args, Streams{Out: &out, Err: &err})
	return code, out.String(), err.String()
}

// recorded reads the record in a file.
func recorded(t *testing.T, path string) *record.Record {
	t.Helper()
	rec := must.Get(record.Load(path))(t)
	return rec
}

// loaded reads the record r.jsonl, which most tests write.
func loaded(t *testing.T) *record.Record {
	t.Helper()
	return recorded(t, "r.jsonl")
}

// ends runs a command line and checks its exit code. The output must contain every part of
// says. The parts are separated by |.
func ends(t *testing.T, code int, says string, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := tare(t, args...)
	lacks := func(part string) bool { return !strings.Contains(stdout+stderr, part) }
	if got != code || slices.ContainsFunc(strings.Split(says, "|"), lacks) {
		t.Errorf("tare %q: exit %d; wanted %d and %q\n%s\n%s", args, got, code, says, stdout, stderr)
	}
	return stdout, stderr
}

// understood checks that a command line in a document uses an existing verb and existing
// flags. Examples in help are tested by running them.
func understood(line string) error {
	root := New(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	root.InitDefaultCompletionCmd()
	verb, rest, err := root.Find(words(aside.ReplaceAllString(strings.TrimSpace(line), "")))
	if err == nil && verb == root {
		err = os.ErrNotExist
	}
	if err == nil {
		err = verb.ParseFlags(rest)
	}
	return err
}

// aside matches a remark or a redirection after a command line in a document.
var aside = regexp.MustCompile(`( {2,}| # | > ).*$`)

func needRunc(t *testing.T) {
	t.Helper()
	need.Runtime(t, "runc")
}

// TestEveryExampleOfHelpWorks runs the examples of all commands in one folder, in the order
// of help. Their output must match their records.
func TestEveryExampleOfHelpWorks(t *testing.T) {
	needRunc(t)
	untouched.Alone(t) // the examples include tare clean
	m := withEngines(t)
	dir := place(t)
	for name, text := range map[string]string{
		"plan.yaml":      "version: 1\nname: example\nmeasure:\n  - lifecycle:\n      targets: [host, floor]\n",
		"notes.txt":      keptNotes,
		"times.csv":      "name,total\na,12.5\nb,13.1\n",
		"my.fio":         "[a]\nrw=read\nsize=1m\n",
		"kata.log":       must.Read(t, realLogs+"cripod.kata.log"),
		"containerd.log": must.Read(t, realLogs+"cripod.containerd.log"),
		"hyperfine.json": `{"results":[{"command":"runc create a","mean":0.1,"times":[0.1,0.1]}]}`,
	} {
		must.Write(t, name, text)
	}
	for _, name := range []string{"runc-old", "runc-new"} {
		path, err := exec.LookPath("runc")
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		must.OK(t, err)
	}
	twoTares(t, dir)
	var lines []string
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			lines = append(lines, strings.TrimSpace(line))
		}
		for _, sub := range c.Commands() {
			if slices.Contains([]string{"report", "label", "redact", "join", "compare", "history"}, sub.Name()) {
				defer collect(sub) // these read a record from an example of lifecycle
				continue
			}
			collect(sub)
		}
	}
	collect(New(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
	if len(lines) < 10 {
		t.Fatalf("only %d examples: %q", len(lines), lines)
	}
	for line := range says {
		if !slices.Contains(lines, line) {
			t.Errorf("command without an example: %s", line)
		}
	}
	done, again := map[string]bool{}, ranAgain{}
	for _, line := range lines {
		args := words(line)
		if args[0] != "tare" {
			t.Errorf("the example is not a tare command: %q", line)
			continue
		}
		args = append(args, shortened(args[1:])...)
		if done[strings.Join(args, " ")] { // two commands have the same example
			continue
		}
		done[strings.Join(args, " ")] = true
		began := time.Now()
		code, out, stderr := tare(t, args[1:]...)
		as := code
		if slices.Contains(args, "--check") && strings.Contains(out, "is not shown to be enough") {
			code = 0 // no result on a busy machine
		}
		if args[1] == "gate" && code == ExitUndecided {
			code = 0 // no result on a busy machine
		}
		if code != 0 || out == "" {
			t.Errorf("%s: exit %d\n%s\n%s", line, code, out, stderr)
		}
		again.check(t, line, as, args[1:], out, stderr)
		t.Logf("%.1f s: %s", time.Since(began).Seconds(), line)
	}
	m.nothingLeft(t)
}

// shortened returns extra flags that shorten an example. The results do not matter to the
// test. The last value of a flag wins.
func shortened(args []string) (more []string) {
	add := func(flag string, value ...string) {
		if !slices.Contains(args, flag) {
			more = append(append(more, flag), value...)
		}
	}
	switch args[0] {
	case "overhead": // overhead measures every phase for ten seconds, three times
		more = []string{"--rounds", "1", "--hold", "1200ms", "--settle", "100ms", "--scale", "0.1"}
		add("--sandboxes", "1")
	case "app":
		add("--warm", "100ms")
	case "storage":
		more = []string{"--settle", "0s", "--ceiling", "0"}
		add("--drop", "files")
	case "startup":
		if !slices.Contains(args, "--log") && !slices.Contains(args, "--") {
			more = []string{"--rounds", "1"}
		}
	case "top": // top would run forever
		add("--once")
	case "lifecycle":
		if slices.Contains(args, "1,10") {
			defer func() { more = append(more, "-n", "1,2") }()
		}
		switch {
		case slices.Contains(args, "--precision"):
			more = []string{"--warmup", "0", "--budget", "1s"}
		case !slices.Contains(args, "-o"):
			more = []string{"--warmup", "0", "--rounds", "1"}
		}
	}
	return more
}

// words splits a command line like a shell that supports only single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	asked := [][]string{{"version"}, {"--version"}, {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}}
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		asked = append(asked, append(strings.Fields(c.CommandPath())[1:], "--help"))
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(New(Streams{}))
	if len(asked) < 20 {
		t.Errorf("only %q", asked)
	}
	for _, args := range asked {
		code, out, stderr := tare(t, args...)
		if code != 0 || len(out) < 10 || stderr != "" || args[len(args)-1] == "--help" && !strings.Contains(out, strings.Join(append([]string{"tare"}, args[:len(args)-1]...), " ")) {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}

func TestInterruptIsNotATargetFailure(t *testing.T) {
	need.Root(t)
	place(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"startup crun=/bin/sleep", "lifecycle host crun=/bin/sleep", "doctor"} {
		var out, err bytes.Buffer
		code := Execute(ended, strings.Fields(args), Streams{Out: &out, Err: &err})
		if code != ExitInterrupted || out.Len() > 0 || err.String() != "tare: interrupted\n" {
			t.Errorf("%s: exit %d, %q, %q", args, code, out.String(), err.String())
		}
	}
}

func TestConcurrentRunIsRefused(t *testing.T) {
	place(t)
	first := must.Get(workspace.New(workspace.DefaultRoots()))(t)
	refuses(t, []string{"lifecycle", "host", "--rounds", "1"}, first.ID, "concurrent runs")
	must.OK(t, first.Close())
	ends(t, ExitDone, "host", "lifecycle", "host", "--rounds", "1")
}
