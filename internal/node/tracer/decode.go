package tracer

import (
	"bytes"
	"errors"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

var errRecord = errors.New("unknown form of record")

// The maximum bytes of a program's name, arguments and environment in an event, and the bits
// of an event's flags, as in watch.c.
const (
	maxFile = 512
	maxArgs = 4096
	maxEnv  = 4096

	flagArgsCut  = 1 // there are more arguments
	flagArgsGone = 2 // they could not be read
	flagEnvCut   = 4 // the environment is the end of a longer one
)

const header = int(unsafe.Sizeof(watchEvent{}))

// decode decodes a record of the programs and returns the start time of the process.
func decode(b []byte) (e Event, born uint64, err error) {
	var is watchEvent
	if len(b) < header {
		return Event{}, 0, errRecord
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&is)), header), b)
	e = Event{
		Kind:   Kind(is.Kind),
		Time:   int64(is.Time),
		Pid:    int(is.Pid),
		Parent: int(is.Parent),
		Comm:   unix.ByteSliceToString(is.Comm[:]),
		CPU:    is.Cpu,
		Busy:   max(is.Busy, 0),
	}
	if e.Kind < Fork || e.Kind > Exit || e.Pid > procs.MaxPid || e.Parent > procs.MaxPid || e.Time < 0 || e.CPU < -1 {
		return Event{}, 0, errRecord
	}
	if e.Kind == Exit {
		e.Status = status(is.Status)
	}
	if e.Kind != Exec {
		return e, is.Start, nil
	}
	file, args, env := int(is.File), int(is.Args), int(is.Env)
	rest := b[header:]
	if file > maxFile || args > maxArgs || env > maxEnv || file+args+env > len(rest) {
		return Event{}, 0, errRecord
	}
	e.File = unix.ByteSliceToString(rest[:file])
	e.Cut = is.Flags&(flagArgsCut|flagArgsGone) != 0
	if is.Flags&flagArgsGone == 0 {
		e.Args = arguments(rest[file : file+args])
	}
	e.CNI = cni(rest[file+args:file+args+env], is.Flags&flagEnvCut != 0)
	return e, is.Start, nil
}

// status converts a status of wait(2) to a shell's exit code.
func status(s uint32) int {
	if signal := s & 0x7f; signal != 0 {
		return 128 + int(signal)
	}
	return int(s >> 8 & 0xff)
}

// arguments splits at NUL bytes. The last argument may lack one.
func arguments(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// cni extracts the variables of a network plugin from an environment. If the begin of
// the environment was cut, the first string is incomplete and skipped. libcni appends
// its variables, so the last one of a name wins.
func cni(env []byte, cut bool) CNI {
	var c CNI
	if cut {
		_, env, _ = bytes.Cut(env, []byte{0})
	}
	if !bytes.Contains(env, []byte("CNI_")) {
		return c
	}
	variables := map[string]*string{"CNI_COMMAND": &c.Command, "CNI_CONTAINERID": &c.Container, "CNI_IFNAME": &c.Interface}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		name, value, ok := bytes.Cut(one, []byte{'='})
		if to := variables[string(name)]; ok && to != nil {
			*to = string(value)
		}
	}
	return c
}
