package top

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// watched is a process whose CPU time and memory are read at every tick: one
// beside its sandbox, or one of a sandbox whose roles are shown.
type watched struct {
	id   procs.ID
	used bool // by the latest survey
	gone bool
	turn uint64 // when it was read last

	// statm is held open: the kernel shows no other process there, even where
	// the pid was given away. -1 where there is no descriptor to keep.
	statm int
	cpu   counter // ns
	rss   Maybe[int64]
	pss   Maybe[int64]

	guests []guest // threads that are counted apart
	apart  Maybe[float64]
}

// guest is a thread of a watched process that runs a guest, or that is charged
// to a cgroup of its sandbox while the process is not.
type guest struct {
	tid int
	own bool // its time is in a cgroup of the sandbox
	cpu counter
}

// errReused says that another process has the pid.
var errReused = fmt.Errorf("another has its pid: %w", procs.ErrGone)

// watch returns the process, opened once.
func (c *Collector) watch(id procs.ID) *watched {
	if w := c.processes[id.Pid]; w != nil && !w.gone {
		if w.id == id {
			w.used = true
			return w
		}
		c.forget(w)
		c.lost.Reused++
		example(&c.lost, "process %d: another has its pid", id.Pid)
		w = &watched{id: id, used: true, statm: -1}
		w.cpu.wrong = true
		c.processes[id.Pid] = w
		return w
	}
	w := &watched{id: id, used: true, statm: -1}
	c.processes[id.Pid] = w
	return w
}

func (c *Collector) forget(w *watched) {
	if w.statm >= 0 {
		unix.Close(w.statm)
		c.descriptors--
	}
	w.statm, w.gone = -1, true
}

func (c *Collector) sweepProcesses() {
	for pid, w := range c.processes {
		if !w.used {
			c.forget(w)
			delete(c.processes, pid)
		}
	}
}

// look reads the process, once a tick.
func (c *Collector) look(w *watched) {
	if w.turn == c.ticks || w.gone {
		return
	}
	w.turn = c.ticks
	err := c.read(w)
	switch {
	case err == nil:
		return
	case errors.Is(err, errReused):
		c.lost.Reused++
		example(&c.lost, "process %d: another has its pid", w.id.Pid)
	case gone(err):
		c.lost.Gone++
	case errors.Is(err, os.ErrPermission):
		c.denied("/proc/"+strconv.Itoa(w.id.Pid), err)
		w.cpu.lost()
		w.rss = Maybe[int64]{}
		return
	default:
		c.lost.Broken++
		example(&c.lost, "process %d: %v", w.id.Pid, err)
	}
	c.forget(w)
	c.stale = true
}

func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, procs.ErrGone)
}

// read reads the clock first: where the descriptor still answers afterwards, the
// pid was its process's until then.
func (c *Collector) read(w *watched) error {
	if w.statm < 0 {
		if err := c.openStatm(w); err != nil {
			return err
		}
	}
	ns, err := c.clock(w.id.Pid)
	if err != nil {
		return err
	}
	at := c.now()
	b, err := c.statm(w)
	if err != nil {
		return err
	}
	pages, err := resident(b)
	if err != nil {
		return err
	}
	if w.statm < 0 {
		if err := c.same(w.id); err != nil {
			return err
		}
	}
	w.rss = known(pages * pageSize)
	if w.cpu.next(ns, at) {
		c.lost.Backwards++
		example(&c.lost, "process %d: its CPU time went back", w.id.Pid)
	}
	c.lookApart(w)
	return nil
}

var pageSize = int64(os.Getpagesize())

// openStatm keeps a descriptor where there is one to spare.
func (c *Collector) openStatm(w *watched) error {
	if c.descriptors >= c.most {
		return nil
	}
	name := c.proc(w.id.Pid, "statm")
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		c.most = c.descriptors
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	// It is its own if the process that has the pid now is.
	if err := c.same(w.id); err != nil {
		unix.Close(fd)
		return err
	}
	w.statm = fd
	c.descriptors++
	return nil
}

// statm reads "size resident shared …", in pages, see proc_pid_statm(5).
func (c *Collector) statm(w *watched) ([]byte, error) {
	fd := w.statm
	if fd < 0 {
		name := c.proc(w.id.Pid, "statm")
		var err error
		if fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		defer unix.Close(fd)
	}
	for {
		n, err := unix.Pread(fd, c.buffer[:256], 0)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = unix.ESRCH
		}
		if err != nil {
			return nil, err
		}
		return c.buffer[:n], nil
	}
}

func resident(statm []byte) (int64, error) {
	_, rest, _ := bytes.Cut(statm, []byte(" "))
	word, _, ok := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(word), 10, 64)
	if !ok || err != nil || n < 0 || n > 1<<44 {
		return 0, fmt.Errorf("statm has an unknown form: %.80q", statm)
	}
	return n, nil
}

// clock reads the CPU time (ns) of a process, below a Root from its stat.
func (c *Collector) clock(pid int) (int64, error) {
	if c.cfg.Root != "" {
		st, err := c.stat(pid)
		return st.ticks * tick, err
	}
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|cpuClockSched, &t)
	switch {
	case err == nil:
		return t.Nano(), nil
	case errors.Is(err, unix.EINVAL):
		return 0, procs.ErrGone
	}
	return 0, err
}

// cpuClockSched is CPUCLOCK_SCHED of the kernel's posix-timers.h: the clock of
// all threads of a process, also of those that have ended, see
// clock_getcpuclockid(3).
const cpuClockSched = 2

// tick is the unit of /proc/PID/stat in ns, USER_HZ: a hundredth of a second on
// every architecture that Go knows.
const tick = 1e9 / 100

func (c *Collector) same(id procs.ID) error {
	st, err := c.stat(id.Pid)
	if err == nil && st.start != id.Start {
		err = errReused
	}
	return err
}

type stat struct {
	ticks int64 // user and system
	start uint64
}

// stat reads /proc/PID/stat, see proc_pid_stat(5). The name in it may hold
// anything, so the fields are counted from the last parenthesis.
func (c *Collector) stat(pid int) (stat, error) {
	b, err := c.file(pid, "stat")
	if err != nil {
		return stat{}, err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return stat{}, errors.New("stat has an unknown form")
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	start, err3 := strconv.ParseUint(string(fields[19]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil || min(user, system) < 0 || max(user, system) > 1<<55 {
		return stat{}, errors.New("stat has an unknown form")
	}
	return stat{user + system, start}, nil
}

// file reads a small file of a process, at most 4 KiB of it.
func (c *Collector) file(pid int, name string) ([]byte, error) {
	path := c.proc(pid, name)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, c.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		return c.buffer[:n], nil
	}
}

func (c *Collector) proc(pid int, name string) string {
	return string(c.cfg.Root) + "/proc/" + strconv.Itoa(pid) + "/" + name
}

// lookApart reads the threads that are counted apart, from schedstat: "run wait
// slices", ns on a CPU. One that ended counts for nothing.
func (c *Collector) lookApart(w *watched) {
	var s sum[float64]
	for i := range w.guests {
		g := &w.guests[i]
		b, err := c.file(w.id.Pid, "task/"+strconv.Itoa(g.tid)+"/schedstat")
		ns := int64(-1)
		if err == nil {
			word, _, _ := bytes.Cut(b, []byte(" "))
			if n, err := strconv.ParseInt(string(word), 10, 64); err == nil {
				ns = n
			}
		}
		if ns < 0 {
			g.cpu.lost()
			continue
		}
		g.cpu.next(ns, c.now())
		g.cpu.into(&s)
	}
	w.apart = s.maybe()
}

// part is what the threads that a test picks have used.
func (w *watched) part(pick func(*guest) bool) Maybe[float64] {
	var s sum[float64]
	for i := range w.guests {
		if pick(&w.guests[i]) {
			w.guests[i].cpu.into(&s)
		}
	}
	return s.maybe()
}

// apartFrom keeps what is known of threads that were counted apart before.
func (w *watched) apartFrom(tids map[int]bool) {
	var now []guest
	for _, g := range w.guests {
		if own, ok := tids[g.tid]; ok {
			g.own = own
			now = append(now, g)
			delete(tids, g.tid)
		}
	}
	for tid, own := range tids {
		now = append(now, guest{tid: tid, own: own})
	}
	w.guests = now
}

// example keeps the first few in words.
func example(p *record.Problems, format string, args ...any) {
	if len(p.Examples) < 8 {
		p.Examples = append(p.Examples, fmt.Sprintf(format, args...))
	}
}

// allowance is how many descriptors of processes may be kept, out of what
// package group leaves.
func allowance() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 64
	}
	if l.Cur >= 1<<16 {
		return 1 << 13
	}
	return int(l.Cur / 16)
}
