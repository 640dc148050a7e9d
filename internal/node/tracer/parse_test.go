package tracer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// execRecord returns an exec record as written by the BPF programs.
func execRecord(file, args, env string, flags uint16) []byte {
	e := watchEvent{Kind: uint32(Exec), Pid: 7, Parent: 3, Time: 1000, Cpu: 20, Busy: 30,
		File: uint16(len(file)), Args: uint16(len(args)), Env: uint16(len(env)), Flags: flags}
	copy(e.Comm[:], "runc")
	b, err := binary.Append(nil, binary.NativeEndian, &e)
	if err != nil {
		panic(err)
	}
	return append(append(append(b, file...), args...), env...)
}

func TestRecordIsParsed(t *testing.T) {
	with := func(change func(*Event)) Event {
		e := Event{Kind: Exec, Time: 1000, Pid: 7, Parent: 3, Comm: "runc", File: "/r", CPU: 20, Busy: 30}
		change(&e)
		return e
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want Event
	}{
		{"arguments", execRecord("/r\x00", "r\x00a b\x00", "", 0), with(func(e *Event) { e.Args = []string{"r", "a b"} })},
		{"empty last argument", execRecord("/r\x00", "r\x00\x00", "", 0), with(func(e *Event) { e.Args = []string{"r", ""} })},
		{"no arguments and no file", execRecord("", "", "", 0), with(func(e *Event) { e.File = "" })},
		{"truncated arguments", execRecord("/r\x00", "r\x00ab", "", flagArgsCut), with(func(e *Event) { e.Args, e.Cut = []string{"r", "ab"}, true })},
		{"unreadable arguments", execRecord("/r\x00", "\x00\x00\x00", "", flagArgsGone), with(func(e *Event) { e.Cut = true })},
		{"environment of a CNI plugin", execRecord("/r\x00", "", "A=b\x00CNI_COMMAND=DEL\x00CNI_IFNAME=eth1\x00", 0), with(func(e *Event) { e.CNI = CNI{Command: "DEL", Interface: "eth1"} })},
		{"last value of a variable wins", execRecord("/r\x00", "", "CNI_COMMAND=ADD\x00CNI_COMMAND=DEL\x00", 0), with(func(e *Event) { e.CNI = CNI{Command: "DEL"} })},
		{"similar names", execRecord("/r\x00", "", "X=CNI_COMMAND=ADD\x00CNI_COMMANDS=ADD\x00CNI_COMMAND", 0), with(func(*Event) {})},
		{"truncated environment", execRecord("/r\x00", "", "CNI_COMMAND=ADD\x00CNI_IFNAME=e\x00", flagEnvCut), with(func(e *Event) { e.CNI = CNI{Interface: "e"} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := decode(tt.b)
			check.That(t, err == nil && reflect.DeepEqual(got, tt.want), "got  %+v, %v\nwant %+v", got, err, tt.want)
		})
	}
	whole := execRecord("/r\x00", "r\x00", "CNI_COMMAND=ADD\x00", 0)
	for n := range whole {
		_, _, err := decode(whole[:n])
		check.That(t, errors.Is(err, errRecord), "the record has %d bytes, but %d were accepted: %v", len(whole), n, err)
	}
}

func TestStatusMatchesThatOfAShell(t *testing.T) {
	for from, want := range map[uint32]int{0: 0, 3 << 8: 3, 255 << 8: 255, 9: 137, 15: 143, 11 | 0x80: 139} {
		check.Equal(t, from, status(from), want)
	}
}

func TestDuplicateExitIsDetected(t *testing.T) {
	o := newOnce()
	for i, tt := range []struct {
		pid  int
		born uint64
		time int64
		want bool
	}{
		{1, 10, 100, true}, {1, 10, 101, false}, {2, 10, 102, true},
		{1, 11, 103, true},                     // another process with the same PID
		{3, 12, 5e9, true}, {2, 10, 5e9, true}, // much later: entries expire
	} {
		check.Equal(t, i, o.first(tt.pid, tt.born, tt.time), tt.want)
	}
	check.That(t, len(o.ended) <= 3, "%d processes are kept", len(o.ended))
}

func TestQueueIsOrderedAndBounded(t *testing.T) {
	var q queue
	for _, at := range []int64{5, 3, 9, 4} {
		q.add(Event{Kind: Fork, Time: at, Busy: 10 - at})
	}
	got := q.take(5)
	check.That(t, len(got) == 3 && inOrder(got) && got[0].Time == 3 && got[2].Time == 5, "%+v", got)
	check.That(t, slices.IsSortedFunc(got, func(a, b Event) int { return int(a.Busy - b.Busy) }), "CPU time decreases: %+v", got)
	got = q.take(8)
	check.That(t, len(got) == 0, "%+v", got)
	got = q.take(100)
	check.That(t, len(got) == 1 && got[0].Time == 9, "%+v", got)
	for range maxPending + 5 {
		q.add(Event{})
	}
	check.That(t, q.lost() == 5 && len(q.take(0)) == maxPending, "%d events reported as lost", q.lost())
}

func FuzzDecode(f *testing.F) {
	f.Add(execRecord("/r\x00", "r\x00a\x00", "CNI_COMMAND=ADD\x00", 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := decode(b)
		check.That(t, err != nil || e.Kind >= Fork && e.Kind <= Exit && e.CPU >= -1 && e.Busy >= 0, "%+v", e)
	})
}

func TestTypesMatchThePrograms(t *testing.T) {
	t.Parallel()
	spec := must.Get(ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object)))(t)
	for name, of := range map[string]reflect.Type{"event": reflect.TypeFor[watchEvent](), "slot": reflect.TypeFor[watchSlot]()} {
		var is *btf.Struct
		must.OK(t, spec.Types.TypeByName(name, &is))
		check.Equal(t, name, int(of.Size()), int(is.Size))
		check.Equal(t, "fields of "+name, of.NumField()-1, len(is.Members)) // the first field describes the layout
		for i, m := range is.Members {
			f := of.Field(i + 1)
			check.Equal(t, name+": "+f.Name, fmt.Sprint(f.Offset, f.Type.Size()), fmt.Sprint(m.Offset.Bytes(), must.Get(btf.Sizeof(m.Type))(t)))
			check.Equal(t, name, strings.ToLower(f.Name), m.Name)
		}
	}
}

// TestEmbeddedProgramsMatchTheirSources compiles all BPF programs of the tree.
// The results must be identical to the embedded files.
func TestEmbeddedProgramsMatchTheirSources(t *testing.T) {
	t.Parallel()
	need.Tool(t, "clang-14")
	for dir, stem := range map[string]string{".": "watch", "../../instrument/bpf/run/datapath": "datapath"} {
		t.Run(stem, func(t *testing.T) {
			t.Parallel()
			into := t.TempDir()
			cmd := exec.Command("go", "generate", dir)
			cmd.Env = append(os.Environ(), "BPF_OUT="+into)
			out, err := cmd.CombinedOutput()
			must.That(t, err == nil, "%v\n%s", err, out)
			name := stem + "_bpfel.o"
			made := must.Get(os.ReadFile(filepath.Join(into, name)))(t)
			there, err := os.ReadFile(filepath.Join(dir, name))
			check.That(t, err == nil && bytes.Equal(made, there), "%s differs from its source (%v): run make bpf", filepath.Join(dir, name), err)
		})
	}
}
