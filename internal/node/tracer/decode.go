package tracer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

var native = binary.NativeEndian

// maxPid is PID_MAX_LIMIT of linux/threads.h.
const maxPid = 4 << 20

var errRecord = errors.New("unknown form of record")

// decode takes apart what the programs hand over, and says when the process was
// born.
func decode(b []byte) (e Event, born uint64, err error) {
	if len(b) < header {
		return Event{}, 0, errRecord
	}
	e = Event{
		Kind:   Kind(native.Uint32(b[atKind:])),
		Time:   int64(native.Uint64(b[atTime:])),
		Pid:    int(native.Uint32(b[atPid:])),
		Parent: int(native.Uint32(b[atParent:])),
		Comm:   cString(b[atComm : atComm+16]),
		CPU:    int64(native.Uint64(b[atCPU:])),
		Busy:   max(int64(native.Uint64(b[atBusy:])), 0),
	}
	born = native.Uint64(b[atStart:])
	if e.Kind < Fork || e.Kind > Exit || e.Pid > maxPid || e.Parent > maxPid || e.Time < 0 || e.CPU < -1 {
		return Event{}, 0, errRecord
	}
	if e.Kind == Exit {
		e.Status = status(native.Uint32(b[atStatus:]))
	}
	if e.Kind != Exec {
		return e, born, nil
	}
	file, args, env := int(native.Uint16(b[atFile:])), int(native.Uint16(b[atArgs:])), int(native.Uint16(b[atEnv:]))
	flags := native.Uint16(b[atFlags:])
	rest := b[header:]
	if file > maxFile || args > maxArgs || env > maxEnv || file+args+env > len(rest) {
		return Event{}, 0, errRecord
	}
	e.File = cString(rest[:file])
	e.Cut = flags&(flagArgsCut|flagArgsGone) != 0
	if flags&flagArgsGone == 0 {
		e.Args = arguments(rest[file : file+args])
	}
	e.CNI = cni(rest[file+args:file+args+env], flags&flagEnvCut != 0)
	return e, born, nil
}

// status makes of what wait(2) says what a shell does.
func status(s uint32) int {
	if signal := s & 0x7f; signal != 0 {
		return 128 + int(signal)
	}
	return int(s >> 8 & 0xff)
}

func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// arguments splits at the zeros. The last may lack its own.
func arguments(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// cni takes out of an environment what a network plugin is told, and nothing
// else. Where the environment's begin is missing its first string is only the
// end of one. libcni puts its own behind what it was given itself, and the last
// of a name counts.
func cni(env []byte, cut bool) CNI {
	var c CNI
	if cut {
		_, env, _ = bytes.Cut(env, []byte{0})
	}
	if !bytes.Contains(env, []byte("CNI_")) {
		return c
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		name, value, ok := bytes.Cut(one, []byte{'='})
		if !ok {
			continue
		}
		switch string(name) {
		case "CNI_COMMAND":
			c.Command = string(value)
		case "CNI_CONTAINERID":
			c.Container = string(value)
		case "CNI_IFNAME":
			c.Interface = string(value)
		}
	}
	return c
}
