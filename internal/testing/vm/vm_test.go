package vm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestMissingRequirementNamesItsInstaller(t *testing.T) {
	for name, set := range map[string]func(t *testing.T){
		"no qemu-system-x86_64": func(t *testing.T) { t.Setenv("PATH", t.TempDir()) },
		"no kernel":             func(t *testing.T) { t.Setenv("XDG_CACHE_HOME", t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			set(t)
			_, err := Run(t.Context(), Guest{})
			check.That(t, err != nil && strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "run scripts/install-vm"),
				"got %v", err)
		})
	}
}

func TestMissingDiskNamesItsInstaller(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := NewDisk(t.Context(), "bookworm", t.TempDir())
	check.That(t, err != nil && strings.Contains(err.Error(), "no disk of Debian bookworm") &&
		strings.Contains(err.Error(), "run scripts/install-vm-debian bookworm"), "got %v", err)
}

func TestPhraseIsFoundAcrossWrites(t *testing.T) {
	said := 0
	b := &bounded{limit: 100, phrase: cutPower, said: func() { said++ }}
	for _, text := range []string{"guest: x\nguest: cut", " the", " pow"} {
		fmt.Fprint(b, text)
	}
	check.Equal(t, "notifications", said, 0)
	if fmt.Fprint(b, "er\n"); said != 1 {
		t.Errorf("notified %d times, want 1", said)
	}
}

func TestMachineStopsAtItsTimeout(t *testing.T) {
	need.VM(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begin := time.Now()
	_, err := Run(ctx, Guest{Commands: []Command{{"endless", []string{"sleep", "1000"}}}})
	check.Is(t, err, context.DeadlineExceeded)
	d := time.Since(begin)
	check.That(t, d <= time.Minute, "took %v", d)
	left, err := os.ReadDir(dir)
	check.That(t, err == nil && len(left) == 0, "left %v, %v", left, err)
	for _, process := range processes(t) {
		check.Lacks(t, "process left behind", process, dir)
	}
}

func processes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.That(t, err == nil && len(files) != 0, "no processes: %v", err)
	var all []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil { // otherwise it has exited
			all = append(all, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return all
}

func TestInvalidCommandsAreRefused(t *testing.T) {
	for _, c := range []Command{
		{"", []string{"true"}},
		{"../x", []string{"true"}},
		{"a b", []string{"true"}},
		{"x", nil},
	} {
		err := (&Guest{Commands: []Command{c}}).write(t.Context(), filepath.Join(t.TempDir(), "x"))
		check.That(t, err != nil && strings.Contains(err.Error(), "needs a name of letters"), "%+v: %v", c, err)
	}
}

func TestTruncatedResultsAreRefused(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range map[string]string{"./x.exit": "0\n", "./x.stdout": strings.Repeat("x", 5000)} {
		must.OK(t, errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}), write(w, text)))
	}
	must.OK(t, w.Close())
	whole := b.Bytes()
	x := []Command{{Name: "x"}}
	out := new(Outcome)
	err := out.read(bytes.NewReader(whole), x)
	check.That(t, err == nil && out.Exits["x"] == 0 && len(out.Files["x.stdout"]) == 5000, "whole: %v, %v", out.Exits, err)
	for name, test := range map[string]struct {
		results  []byte
		commands []Command
		want     string
	}{
		"no results":        {nil, x, "the command x has not ended"},
		"missing command":   {whole, []Command{{Name: "y"}}, "the command y has not ended"},
		"truncated":         {whole[:2000], x, "broken"},
		"console output":    {[]byte(strings.Repeat("kernel panic\n", 100)), x, "broken"},
		"invalid exit code": {bytes.ReplaceAll(whole, []byte("0\n\x00"), []byte("?\n\x00")), x, "the end of the command x"},
	} {
		err := new(Outcome).read(bytes.NewReader(test.results), test.commands)
		check.That(t, err != nil && strings.Contains(err.Error(), test.want), "%s: %v", name, err)
	}
}

func write(w *tar.Writer, text string) error {
	_, err := fmt.Fprint(w, text)
	return err
}

func TestOutputIsBounded(t *testing.T) {
	full := 0
	b := &bounded{limit: 10, full: func() { full++ }}
	for _, text := range []string{"12345", "67890", "1"} {
		fmt.Fprint(b, text)
	}
	got := string(b.bytes())
	check.That(t, got == "1234567890" && full == 1, "%q, full %d times", got, full)
}
