package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tare-bench/tare/internal/testing/must"
)

// lie is a misbehaving runtime from testdata/lies.yaml.
type lie struct {
	What, Lines string
	Version     string // shell lines that print the version; "": the version of runc
	Args        string // extra arguments of tare
	Kind, Says  string // of every failure; "": any
	Times       bool   // some operations succeed
	Fine        bool   // all operations succeed, and tare exits with 0
	Refused     string // the error if tare starts nothing
	Long        bool   // only for make torture
}

// runtimesThatLie measures each misbehaving runtime together with the host. No runtime may
// cause a wrong time, disturb other targets, control the terminal, or leave anything
// behind.
func runtimesThatLie(t *testing.T) {
	var lies []lie
	must.OK(t, yaml.UnmarshalWithOptions([]byte(must.Read(t, filepath.Join(testdata, "lies.yaml"))), &lies, yaml.Strict()))
	for _, c := range lies {
		if c.Long && !torturing {
			continue
		}
		t.Run(c.What, func(t *testing.T) {
			dir := place(t)
			precious := filepath.Join(dir, "precious")
			must.OK(t, os.MkdirAll(filepath.Join(precious, "folder"), 0o755))
			path := wrapper(t, dir, "wrapped", strings.NewReplacer("DIR", dir, "TESTPID", fmt.Sprint(os.Getpid())).Replace(c.Lines))
			if c.Version != "" {
				text := must.Read(t, path)
				lines := strings.Replace(text, "then exec", "then "+c.Version+"; exit; exec", 1)
				must.OK(t, os.WriteFile(path, []byte(lines), 0o755))
			}
			code, out, stderr := tare(t, append([]string{"lifecycle", "host", "bad=" + path, "--rounds", "3", "-o", "r.jsonl"}, strings.Fields(c.Args)...)...)
			if c.Refused != "" {
				if code != ExitUsage || !strings.Contains(stderr, c.Refused) || strings.ContainsRune(out+stderr, 0x1b) {
					t.Errorf("exit %d\n%.4000s%.4000s", code, out, stderr)
				}
				return
			}
			if want := map[bool]int{true: ExitDone, false: ExitFailed}[c.Fine]; code != want {
				t.Errorf("exit %d\n%.4000s%.4000s", code, out, stderr)
			}
			if strings.ContainsRune(out+stderr, 0x1b) || len(out)+len(stderr) > 1<<20 {
				t.Errorf("control characters or %d bytes reached the terminal", len(out)+len(stderr))
			}
			n, failures := times(t, "r.jsonl", "bad")
			if (n != 0) != c.Times || len(failures) == 0 != c.Fine {
				t.Errorf("%d times, failures %+v", n, failures)
			}
			for _, f := range failures {
				if c.Kind != "" && f.Kind != c.Kind || !strings.Contains(f.Detail, c.Says) {
					t.Errorf("failure %+v", f)
				}
			}
			if n, failures := times(t, "r.jsonl", "host"); len(failures) > 0 || (n == 0 && !strings.Contains(c.Args, "create")) {
				t.Errorf("host: %d times, failures %v", n, failures)
			}
			if !c.Fine && (!strings.Contains(out, "bad") || !strings.Contains(out, "failed")) {
				t.Errorf("the report does not mention it:\n%s", out)
			}
			if _, err := os.Stat(filepath.Join(precious, "folder")); err != nil {
				t.Errorf("a foreign file was removed: %v", err)
			}
			if code, out, stderr := tare(t, "clean"); code != ExitDone {
				t.Errorf("clean: exit %d\n%s%s", code, out, stderr)
			}
			// A killed process is listed until the kernel has scheduled its exit.
			id := loaded(t).Header.RunID
			await(t, "the end of everything that the runtime left", func() bool {
				return len(running("86399"))+len(namesOf([]string{id})) == 0
			})
		})
	}
}
