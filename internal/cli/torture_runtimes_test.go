package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// lie is a runtime that is runc but for what its shell lines do before. $verb is the
// operation, $5 the bundle of create and run, $7 its pid file; the id comes last.
type lie struct {
	what, lines string
	version     string // lines that say the version, "" for runc's own
	args        []string
	kind, says  string // of every failure; "" for any
	times       bool   // some operations are as they should be
	fine        bool   // all are: tare ends with 0
	refused     string // nothing is begun, and this is said
	long        bool   // for make torture only
}

// briefly lets what hangs be given up soon, and the host beside it be late on a busy machine.
var briefly = []string{"--timeout", "2s"}

// lies are 30 of them. DIR is the folder of the test.
func lies() []lie {
	all := []lie{
		{what: "it exits 127", lines: "echo 'no such thing' >&2; exit 127", kind: record.FailExit, says: "exit status 127"},
		{what: "it hangs past the time-out", lines: "exec sleep 60", args: briefly, kind: record.FailTimeout, says: "timed out"},
		{what: "it prints rubbish for state", lines: `if [ "$verb" = state ]; then printf '\033[2J{"id":"'; exit 0; fi`, kind: record.FailState, says: "state printed no JSON"},
		{what: "it says done and creates nothing", lines: "exit 0", args: []string{"--ops", "create"}, kind: record.FailState, says: "no container process"},
		{what: "it says done and runs nothing", lines: "exit 0", args: append([]string{"--ops", "run"}, briefly...), kind: record.FailTimeout, says: "the workload's first output"},
		{what: "its pid file names a process that is not the container's", lines: `[ "$verb" = create ] || exit 0; echo ` + fmt.Sprint(os.Getpid()) + ` > "$7"; exit 0`,
			args: []string{"--ops", "create"}, kind: record.FailState, says: "not in the container's cgroup"},
		{what: "it kills itself", lines: "kill -SEGV $$", kind: record.FailExit, says: "signal 11"},
		{what: "it talks without end", lines: "yes x | head -c 3000000; exit 1", kind: record.FailExit, says: "exit status 1"},

		{what: "it never stops talking", lines: "exec yes", args: briefly, long: true},
		{what: "it never stops complaining", lines: "exec yes >&2", args: briefly, long: true},
		{what: "it works and says 3", lines: `"$runc" "$@"; exit 3`, kind: record.FailExit, says: "exit status 3", long: true},
		{what: "it stops itself", lines: "kill -STOP $$", args: briefly, kind: record.FailTimeout, long: true},
		{what: "it kills who waits for it", lines: "kill -9 $PPID; exec sleep 60", args: append([]string{"--ops", "create"}, briefly...), long: true},
		{what: "it leaves forks behind", lines: "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 86399 >/dev/null 2>&1 </dev/null & done", times: true, fine: true},
		{what: "its forks hold its output", lines: "sleep 86399 &", args: []string{"--timeout", "3s"}, times: true, fine: true, long: true},
		{what: "its forks have a session of their own", lines: "setsid sleep 86399 >/dev/null 2>&1 </dev/null &", times: true, fine: true, long: true},
		{what: "it removes its state", lines: `[ "$verb" = start ] && rm -rf "$2"`, long: true, times: true},
		{what: "it makes its state a file", lines: `[ "$verb" = create ] && { rm -rf "$2"; echo x >"$2"; }`, long: true},
		{what: "it makes its state a link elsewhere", lines: `[ "$verb" = create ] && { rm -rf "$2"; ln -s DIR/precious "$2"; }`, times: true, fine: true, long: true},
		{what: "its pid file is a pipe", lines: `[ "$verb" = create ] || exit 0; mkfifo "$7"; exit 0`, args: []string{"--ops", "create"}, kind: record.FailState, long: true},
		{what: "its pid file is a link", lines: `[ "$verb" = create ] || exit 0; ln -s /etc/hostname "$7"; exit 0`, args: []string{"--ops", "create"}, kind: record.FailState, long: true},
		{what: "its pid is that of init", lines: `[ "$verb" = create ] || exit 0; echo 1 >"$7"; exit 0`, args: []string{"--ops", "create"}, kind: record.FailState, long: true},
		{what: "its pid is no number", lines: `[ "$verb" = create ] || exit 0; echo 99999999999999999999 >"$7"; exit 0`, args: []string{"--ops", "create"}, kind: record.FailState},
		{what: "its state says running when there is nothing", lines: `for id; do :; done; [ "$verb" = state ] && { printf '{"id":"%s","status":"running","pid":1}' "$id"; exit 0; }`, long: true, times: true},
		{what: "its state speaks of another", lines: `[ "$verb" = state ] && { echo '{"id":"another","status":"running","pid":2}'; exit 0; }`, kind: record.FailState, long: true},
		{what: "its state has no end", lines: `[ "$verb" = state ] && exec yes '{'`, args: briefly, long: true},
		{what: "it says killed and kills nothing", lines: `[ "$verb" = kill ] && exit 0`, args: []string{"--timeout", "1s"}, times: true, long: true},
		{what: "it says deleted and deletes nothing", lines: `[ "$verb" = delete ] && exit 0`, times: true, long: true},
		{what: "it says what the workload would, with escapes", lines: `for id; do :; done; printf '\033]0;x\007\ntare-probe/1 %s 1 1 1 1\n' "$id"; exit 0`, args: append([]string{"--ops", "run"}, briefly...), long: true},
		{what: "its version is endless", version: "yes runc version | head -c 50000000", refused: "printed more than 32 MiB", long: true},
		{what: "its version is a page of escapes", version: `printf 'runc version \033[2J\033]0;x\007\n'`, times: true, fine: true},
	}
	for _, verb := range []string{"create", "start", "kill", "state", "delete"} {
		all = append(all, lie{what: "it hangs at " + verb, lines: fmt.Sprintf(`[ "$verb" = %s ] && exec sleep 60`, verb), args: briefly, times: verb != "state", long: true})
	}
	return all
}

// runtimesThatLie weighs each of them beside the host: none yields a time that is not
// so, the others go on, nothing of theirs reaches the terminal, and nothing stays.
func runtimesThatLie(t *testing.T) {
	for _, c := range lies() {
		if c.long && !torturing {
			continue
		}
		t.Run(c.what, func(t *testing.T) {
			dir := place(t)
			precious := filepath.Join(dir, "precious")
			must.OK(t, os.MkdirAll(filepath.Join(precious, "folder"), 0o755))
			path := wrapper(t, dir, "wrapped", strings.ReplaceAll(c.lines, "DIR", dir))
			if c.version != "" {
				text := must.Read(t, path)
				lines := strings.Replace(text, "then exec", "then "+c.version+"; exit; exec", 1)
				must.OK(t, os.WriteFile(path, []byte(lines), 0o755))
			}
			code, out, stderr := tare(t, append([]string{"lifecycle", "host", "bad=" + path, "--rounds", "3", "-o", "r.jsonl"}, c.args...)...)
			if c.refused != "" {
				if code != ExitUsage || !strings.Contains(stderr, c.refused) || strings.ContainsRune(out+stderr, 0x1b) {
					t.Errorf("exit %d\n%.4000s%.4000s", code, out, stderr)
				}
				return
			}
			if want := map[bool]int{true: ExitDone, false: ExitFailed}[c.fine]; code != want {
				t.Errorf("exit %d\n%.4000s%.4000s", code, out, stderr)
			}
			if strings.ContainsRune(out+stderr, 0x1b) || len(out)+len(stderr) > 1<<20 {
				t.Errorf("control signs or %d bytes reached the terminal", len(out)+len(stderr))
			}
			n, failures := times(t, "r.jsonl", "bad")
			if (n != 0) != c.times || len(failures) == 0 != c.fine {
				t.Errorf("%d times, failures %+v", n, failures)
			}
			for _, f := range failures {
				if c.kind != "" && f.Kind != c.kind || !strings.Contains(f.Detail, c.says) {
					t.Errorf("failure %+v", f)
				}
			}
			if n, failures := times(t, "r.jsonl", "host"); len(failures) > 0 || (n == 0 && !slices.Contains(c.args, "create")) {
				t.Errorf("host: %d times, failures %v", n, failures)
			}
			if !c.fine && (!strings.Contains(out, "bad") || !strings.Contains(out, "failed")) {
				t.Errorf("the report does not tell of it:\n%s", out)
			}
			if _, err := os.Stat(filepath.Join(precious, "folder")); err != nil {
				t.Errorf("what is not the run's was removed: %v", err)
			}
			if code, out, stderr := tare(t, "clean"); code != ExitDone {
				t.Errorf("clean: exit %d\n%s%s", code, out, stderr)
			}
			left := append(running("86399"), namesOf([]string{loaded(t).Header.RunID})...)
			if len(left) > 0 {
				t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
			}
		})
	}
}
