package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestOutputReplacesOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		is    func(t *testing.T, path string)
		force bool
		says  string // of the error, "" where the text is written
	}{
		"a file that does not exist is made":     {func(*testing.T, string) {}, false, ""},
		"a file that exists is kept":             {holds("theirs"), false, "exists; name another file with -o, or replace it with --force"},
		"with force a file is replaced":          {holds("theirs"), true, ""},
		"a record is kept, even with force":      {holds(`{"type":"header","schema":1}` + "\n"), true, "is a record and is not overwritten"},
		"a compressed record is kept":            {holds("\x28\xb5\x2f\xfd rest"), true, "is a record and is not overwritten"},
		"a folder is kept":                       {folder, true, "is a folder"},
		"an own link leads to what is replaced":  {linkTo("theirs", -1), true, ""},
		"a link of another user is not followed": {linkTo("theirs", 65534), true, "is a link of another user"},
		"a disk is not written to":               {toDisk, true, "is a disk or a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			test.is(t, path)
			before, _ := os.Readlink(path)
			err := writeOutput(path, []byte("ours"), test.force)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want an error with %q", err, test.says)
				}
				return
			}
			must.OK(t, err)
			if after, _ := os.Readlink(path); must.Read(t, path) != "ours" || after != before {
				t.Errorf("it holds %q, link %q, before %q", must.Read(t, path), after, before)
			}
		})
	}
}

func TestOutputGoesIntoFIFOsAndDevicesAsTheyAre(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fifo")
	must.OK(t, unix.Mkfifo(path, 0o600))
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	defer reader.Close()
	must.OK(t, writeOutput(path, []byte("ours"), false))
	text := make([]byte, 10)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "ours" {
		t.Errorf("the FIFO gave %q, %v", text[:n], err)
	}
	must.OK(t, writeOutput("/dev/null", []byte("ours"), true))
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("/dev/null is %v, %v", info.Mode(), err)
	}
}

func TestAReportNeverReplacesTheRecordThatItReads(t *testing.T) {
	t.Parallel()
	run := stored(t, t.TempDir(), "runc", false)
	before := must.Read(t, run)
	refuses(t, []string{"report", run, "--format", "csv", "-o", run, "--force"}, "is a record and is not overwritten")
	if must.Read(t, run) != before {
		t.Error("the record has changed")
	}
}

func holds(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { must.Write(t, path, text) }
}

func folder(t *testing.T, path string) { must.OK(t, os.Mkdir(path, 0o755)) }

// linkTo makes a link to a file with a text. An owner below 0 leaves it to this user.
func linkTo(text string, owner int) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		must.Write(t, path+".real", text)
		must.OK(t, os.Symlink(path+".real", path))
		if owner >= 0 {
			need.Root(t)
			must.OK(t, os.Lchown(path, owner, owner))
		}
	}
}

func toDisk(t *testing.T, path string) {
	node, _ := loopdev.In(t, t.TempDir(), 1<<20)
	must.OK(t, os.Symlink(node, path))
}
