package lane

import (
	"cmp"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Layout of the shared memory, as in src/shared.h.
const (
	layout     = 4
	headerSize = 4096
	envSize    = 131072
	slotSize   = 65536
	tokenSize  = 160
	argsSize   = 16384
	outSize    = 32768
	errSize    = 8192
	maxArgs    = 256
	maxEnv     = 2048
)

const (
	wordIdle  = 0
	wordArmed = 1
	wordAlone = 2
)

type header struct {
	Layout     uint32
	Gate       uint32
	Parked     uint32
	WantParked uint32
	Done       uint32
	WantDone   uint32
	Priority   uint32
	Home       uint32
}

type slot struct {
	Word    uint32
	Op      uint32
	Need    uint32
	Watch   int32
	Timeout uint64
	Argc    uint32
	Signal  uint32

	Start, Spawned, Returned, Seen, Exited int64
	User, Sys                              uint64
	MaxRSS                                 uint64
	Own                                    uint64
	Status                                 int32
	Err                                    int32
	Stage                                  uint32
	Pid                                    int32
	WorkloadStatus                         int32
	WorkloadKnown                          uint32
	Missing                                uint32
	OutLen, ErrLen                         uint32
	Dropped                                uint32

	Token [tokenSize]byte
	Args  [argsSize]byte
	Out   [outSize]byte
	Errs  [errSize]byte
}

// shared is the memory behind a pool.
type shared struct {
	fd   int
	data []byte
}

func newShared(lanes int, env []string) (*shared, error) {
	size := headerSize + envSize + lanes*slotSize
	fd, err := unix.MemfdCreate("tare-lanes", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("lanes: memfd_create: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lanes: %d KiB of shared memory: %w", size>>10, err)
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lanes: mmap: %w", err)
	}
	s := &shared{fd: fd, data: data}
	s.header().Layout = layout
	if err := putStrings(data[headerSize:headerSize+envSize], env, maxEnv); err != nil {
		s.close()
		return nil, fmt.Errorf("lanes: the environment has more than %d variables or %d KiB: %w", maxEnv, envSize>>10, err)
	}
	return s, nil
}

func (s *shared) close() {
	unix.Munmap(s.data)
	unix.Close(s.fd)
}

func (s *shared) header() *header { return (*header)(unsafe.Pointer(&s.data[0])) }

func (s *shared) slot(i int) *slot {
	return (*slot)(unsafe.Pointer(&s.data[headerSize+envSize+i*slotSize]))
}

// put writes an order into a slot. The lane must be idle.
func (s *slot) put(o Order) error {
	if err := putStrings(s.Args[:], o.Args, maxArgs); err != nil {
		return err
	}
	if len(o.Token) >= tokenSize {
		return fmt.Errorf("token of %d bytes: %w", len(o.Token), errTooLong)
	}
	clear(s.Token[copy(s.Token[:], o.Token):])
	s.Op = uint32(o.Kind)
	if o.Kind == Spawn || o.Kind == FloorCreate || o.Kind == FloorRun {
		s.Pid = 0 // reset the pid of the last workload
	}
	s.Need = uint32(o.Need)
	s.Watch = int32(o.Watch)
	s.Signal = uint32(cmp.Or(o.Signal, unix.SIGTERM))
	s.Timeout = uint64(max(o.Timeout, time.Millisecond))
	s.Argc = uint32(len(o.Args))
	return nil
}

// result copies the result of a lane from its slot.
func (s *slot) result() Result {
	r := Result{
		Start: s.Start, Spawned: s.Spawned, Returned: s.Returned, Seen: s.Seen, Exited: s.Exited,
		UserCPU: time.Duration(s.User), SysCPU: time.Duration(s.Sys), MaxRSS: int64(s.MaxRSS),
		Status: unix.WaitStatus(s.Status), Pid: int(s.Pid),
		Workload: unix.WaitStatus(s.WorkloadStatus), WorkloadKnown: s.WorkloadKnown != 0,
		Stdout:  string(s.Out[:min(s.OutLen, outSize)]),
		Stderr:  string(s.Errs[:min(s.ErrLen, errSize)]),
		Dropped: int(s.Dropped), OwnCPU: time.Duration(s.Own),
	}
	if s.Stage != 0 {
		r.Err = &Error{Step: Step(s.Stage), Errno: unix.Errno(s.Err), Missing: Need(s.Missing)}
	}
	return r
}

// putStrings writes strings, each ended by a NUL byte, and an empty string at the end.
func putStrings(dst []byte, list []string, most int) error {
	if len(list) > most {
		return errTooLong
	}
	at := 0
	for _, v := range list {
		if at+len(v)+2 > len(dst) {
			return errTooLong
		}
		at += copy(dst[at:], v)
		dst[at] = 0
		at++
	}
	dst[at] = 0
	return nil
}
