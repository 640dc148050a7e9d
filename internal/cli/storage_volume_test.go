package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/loopdev"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// short are the flags of the shortest storage run.
var short = []string{"--rounds", "1", "--ceiling", "0", "--settle", "0", "--drop", "files", "-q", "-o", "r.jsonl"}

// weighed runs tare storage and returns its record and output.
func weighed(t *testing.T, args ...string) (code int, rec *record.Record, stdout, stderr string) {
	t.Helper()
	code, stdout, stderr = tare(t, slices.Concat([]string{"storage"}, args, short)...)
	rec, err := record.Load("r.jsonl")
	if err != nil {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	return code, rec, stdout, stderr
}

// Package storage/run tests each tool. This test checks the flags, with a tool that every
// machine has.
func TestToolReportsFiguresOnHostAndRunc(t *testing.T) {
	needRunc(t)
	place(t)
	code, rec, out, stderr := weighed(t, "host", "runc", "--tool", "dd", "--volume", "bind", "--jobs", "write,read", "--size", "4M")
	if code != ExitDone || len(rec.Cells) != 2*2 {
		t.Fatalf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		if x.Reported == nil || x.Tool != "dd" || x.Version == "" || x.Reported.Read.Bytes+x.Reported.Write.Bytes != 4<<20 {
			t.Errorf("%+v", x)
		}
	}
}

func TestUnconfirmedDeviceIsRefusedBeforeAnythingRuns(t *testing.T) {
	need.Root(t)
	dir := place(t)
	free, image := loopdev.In(t, dir, 8<<20)
	fixed, _ := loopdev.In(t, dir, 8<<20, "--read-only")
	used, _ := loopdev.In(t, dir, 8<<20)
	loopdev.Mount(t, used, filepath.Join(dir, "used"), 0)
	must.OK(t, os.WriteFile("file", nil, 0o600))
	refusals(t, "devices", "FREE", free, "USED", used, "FIXED", fixed, "DIR", dir)
	b, err := os.ReadFile(image)
	if err != nil || len(b) != 8<<20 || strings.Trim(string(b), "\x00") != "" {
		t.Errorf("the device was written to: %v", err)
	}
}

func TestConfirmedFreeDeviceIsMeasured(t *testing.T) {
	need.Tool(t, "fio")
	needRunc(t)
	dir := place(t)
	device, image := loopdev.In(t, dir, 16<<20)
	targets := []string{"host", "runc"}
	if path := engines.Runsc(); path != "" {
		targets = append(targets, "runsc="+path)
	}
	code, rec, out, stderr := weighed(t, append(targets, "--missing", "skip", "--volume", "device="+device, "--i-know-this-destroys", device, "--size", "4M", "--numjobs", "1", "--jobs", "write,randread")...)
	if code != ExitDone || len(rec.Cells) != 4 {
		t.Fatalf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
	}
	for _, x := range rec.Cells {
		if x.Failure != nil || x.Reported == nil || x.Reported.Read.Bytes+x.Reported.Write.Bytes != 4<<20 {
			t.Errorf("%s %s: %+v, %+v", x.Target, x.Job, x.Failure, x.Reported)
		}
	}
	b, err := os.ReadFile(image)
	if err != nil || strings.Trim(string(b[:4<<20]), "\x00") == "" || strings.Trim(string(b[4<<20:]), "\x00") != "" {
		t.Errorf("the run did not write exactly the first 4 MiB of the device: %v", err)
	}
	for _, p := range rec.Places {
		if unsupported := p.Target == "runsc"; unsupported != strings.Contains(p.Absent, "unsupported") || unsupported && !strings.Contains(p.Absent, "gVisor") {
			t.Errorf("%s: absent %q", p.Target, p.Absent)
		}
	}
	check.Equal(t, "places", len(rec.Places), len(targets))
}

func TestNFSVolumeIsUnsupportedWithoutNFSClient(t *testing.T) {
	need.Tool(t, "fio")
	need.Root(t)
	text := must.Read(t, "/proc/filesystems")
	modules, _ := filepath.Glob("/lib/modules/*/kernel/fs/nfs/nfs.ko*")
	if strings.Contains(text, "\tnfs") || len(modules) > 0 {
		t.Skip("this kernel has an NFS client")
	}
	for name, c := range map[string]struct {
		volumes, missing string
		code, cells      int
		level            string
	}{
		"required volume is missing": {"nfs=localhost:/x,bind", "fail", ExitFailed, 1, "error"},
		"optional volume is missing": {"nfs=localhost:/x,bind", "skip", ExitDone, 1, "note"},
		"optional and only volume":   {"nfs=localhost:/x", "skip", ExitUsage, 0, "note"},
		"required and only volume":   {"nfs=localhost:/x", "fail", ExitUsage, 0, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			place(t)
			code, rec, out, stderr := weighed(t, "host", "--volume", c.volumes, "--missing", c.missing, "--size", "4M", "--jobs", "read")
			if code != c.code || len(rec.Cells) != c.cells {
				t.Errorf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
			}
			if !slices.ContainsFunc(rec.Findings, func(f record.Finding) bool {
				return f.Level == c.level && strings.Contains(f.Message, "unsupported: this kernel") && strings.Contains(f.Advice, "CONFIG_NFS_FS")
			}) {
				t.Errorf("findings %+v", rec.Findings)
			}
		})
	}
}

// TestDiskFailureInContainerFailsOnlyItsCells uses a runtime that mounts a disk at /data
// which is not the disk that tare checked.
func TestDiskFailureInContainerFailsOnlyItsCells(t *testing.T) {
	need.Tool(t, "fio")
	needRunc(t)
	for name, c := range map[string]struct {
		size  int64
		flags uintptr
		says  string
	}{
		"full disk":      {8 << 20, 0, "no space left on the volume"},
		"read-only disk": {16 << 20, unix.MS_RDONLY, "the volume is read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			disk := filepath.Join(dir, "disk")
			device, _ := loopdev.In(t, dir, c.size)
			loopdev.Mount(t, device, disk, c.flags)
			path := wrapper(t, dir, "wrapped", fmt.Sprintf(`for a; do [ -f "$a/config.json" ] && sed -i 's#"mounts":\[#&{"destination":"/data","type":"bind","source":"%s","options":["rbind"]},#' "$a/config.json"; done`, disk))
			code, rec, out, stderr := weighed(t, "host", "runc", "bad="+path, "--volume", "rootfs", "--size", "12M", "--numjobs", "1", "--jobs", "read,write")
			if code != ExitFailed || len(rec.Cells) != 6 {
				t.Errorf("exit %d, %d cells\n%s\n%s", code, len(rec.Cells), out, stderr)
			}
			for _, x := range rec.Cells {
				switch {
				case x.Target != "bad" && (x.Failure != nil || x.Reported == nil):
					t.Errorf("%s %s: %+v", x.Target, x.Job, x.Failure)
				case x.Target == "bad" && (x.Reported != nil || x.Failure == nil):
					t.Errorf("%s has results: %+v", x.Job, x.Reported)
				case x.Target == "bad" && strings.HasPrefix(x.Job, "read") && !strings.Contains(x.Failure.Detail, c.says):
					t.Errorf("%s: %+v", x.Job, x.Failure)
				}
			}
			check.Contains(t, "report", out, "failed 2/6 cells")
		})
	}
}
