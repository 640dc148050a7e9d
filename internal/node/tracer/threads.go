package tracer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cloneThread is CLONE_THREAD of linux/sched.h.
const cloneThread = 0x10000

// raw is an event before it is known whose it is: its pids are those
// of threads.
type raw struct {
	Event
	by     int  // the thread that it happened on, or its process
	known  bool // by is the process
	thread bool // of Fork: a thread was born
	dead   bool // of Exit: it was the last; where the kernel says so
	told   bool // the kernel says so
}

// parse takes an event of tracefs apart. Of an exec what the event lacks is read at once.
func (t *tracefs) parse(time int64, payload []byte) (raw, bool) {
	if len(payload) < 8 {
		return raw{}, false
	}
	id := native.Uint16(payload)
	for _, f := range t.events {
		if f.id != id {
			continue
		}
		pid, ok1 := f.number(payload, "pid")
		by, ok2 := f.number(payload, "common_pid")
		if !ok1 || !ok2 || time < 0 || pid == 0 || pid > maxPid || by > maxPid {
			break
		}
		r := raw{by: int(by), Event: Event{Time: time, Pid: int(pid), CPU: -1, Busy: -1}}
		switch f.name {
		case "task_newtask":
			flags, ok := f.number(payload, "clone_flags")
			r.Kind, r.CPU, r.thread = Fork, 0, flags&cloneThread != 0
			r.Comm, _ = f.text(payload, "comm")
			return r, ok
		case "sched_process_exec":
			r.Kind = Exec
			file, ok := f.text(payload, "filename")
			r.File = file
			r.look()
			return r, ok
		case "sched_process_exit":
			r.Kind, r.Status = Exit, -1
			r.Comm, _ = f.text(payload, "comm")
			dead, told := f.number(payload, "group_dead")
			r.dead, r.told = dead != 0, told
			return r, true
		}
	}
	t.missed.Add(1)
	return raw{}, false
}

// look reads of a process that has just executed a program what its event does
// not have.
func (e *Event) look() {
	args, ok := begin(e.Pid, "cmdline", maxArgs+1)
	e.Cut = !ok || len(args) == 0 || len(args) > maxArgs
	e.Args = arguments(args[:min(len(args), maxArgs)])
	if env, ok := begin(e.Pid, "environ", maxEnvironment); ok {
		e.CNI = cni(env, false)
	}
	if e.Comm = name(e.Pid); e.Comm == "" && e.File != "" {
		base := filepath.Base(e.File)
		e.Comm = base[:min(len(base), 15)]
	}
}

// name is a thread's, empty where it is gone.
func name(tid int) string {
	comm, _ := begin(tid, "comm", 64)
	return strings.TrimSuffix(string(comm), "\n")
}

// maxEnvironment is how much of an environment is read where its end cannot be
// read alone. The system's bound is 6 MiB, see execve(2).
const maxEnvironment = 256 << 10

// begin reads the first bytes of a file of a process.
func begin(pid int, name string, most int) ([]byte, bool) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b := make([]byte, 0, min(most, 4<<10))
	for len(b) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):min(cap(b), most)])
		b = b[:len(b)+n]
		if err != nil || n == 0 {
			break
		}
	}
	return b, true
}

// threads knows which process each thread belongs to, and who its parent is.
type threads struct {
	of      map[int]int // thread → process
	alive   map[int]int // process → its threads that are there
	parents map[int]int // process → who forked it
}

// scan finds what is there already.
func scan() threads {
	t := threads{of: map[int]int{}, alive: map[int]int{}, parents: map[int]int{}}
	pids, _ := os.ReadDir("/proc")
	for _, p := range pids {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		tasks, _ := os.ReadDir("/proc/" + p.Name() + "/task")
		for _, task := range tasks {
			if tid, err := strconv.Atoi(task.Name()); err == nil {
				t.join(tid, pid)
			}
		}
		t.parents[pid], _ = parent(pid)
	}
	return t
}

func (t *threads) join(tid, pid int) {
	if _, known := t.of[tid]; !known {
		t.alive[pid]++
	}
	t.of[tid] = pid
}

// event makes of a thread's event its process's, if that is one.
func (t *threads) event(r raw) (Event, bool) {
	e := r.Event
	switch r.Kind {
	case Fork:
		by := r.by
		if !r.known {
			by = t.process(by)
		}
		if r.thread {
			t.join(r.Pid, by)
			return e, false
		}
		t.join(r.Pid, r.Pid)
		e.Parent = by
		t.parents[r.Pid] = by
	case Exec:
		// Whichever thread does it, it has the process's pid from then on, and
		// is alone.
		e.Parent = t.parents[r.Pid]
		for tid, pid := range t.of {
			if pid == r.Pid && tid != r.Pid {
				delete(t.of, tid)
			}
		}
		t.of[r.Pid], t.alive[r.Pid] = r.Pid, 1
	case Exit:
		if e.Pid = r.by; !r.known {
			e.Pid = t.process(r.Pid)
		}
		if tid := r.Pid; t.of[tid] == e.Pid {
			delete(t.of, tid)
			t.alive[e.Pid]--
		}
		if r.told && !r.dead || !r.told && t.alive[e.Pid] > 0 {
			return e, false
		}
		e.Parent = t.parents[e.Pid]
		delete(t.alive, e.Pid)
		delete(t.parents, e.Pid)
		e.wait()
	}
	return e, true
}

// wait asks a process that has just ended, if its parent has not yet, what it
// used and how it ended. It may be on its way still, and end up with a little
// more.
func (e *Event) wait() {
	if ns, ok := processTime(e.Pid); ok {
		e.CPU = ns
	}
	fields, ok := stat(e.Pid)
	if ok && len(fields) >= 50 && (fields[0] == "Z" || fields[0] == "X") && e.Status == -1 {
		if code, err := strconv.ParseUint(fields[49], 10, 32); err == nil {
			e.Status = status(uint32(code))
		}
	}
}

// process is whose thread that is.
func (t *threads) process(tid int) int {
	if pid, ok := t.of[tid]; ok {
		return pid
	}
	b, ok := begin(tid, "status", 4<<10)
	if !ok {
		return tid
	}
	pid, ended := tid, false
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "State":
			ended = strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X")
		case "Tgid":
			if n, err := strconv.Atoi(value); err == nil {
				pid = n
			}
		}
	}
	// A first thread that has ended stays until the others have.
	if !ended {
		t.join(tid, pid)
	}
	return pid
}

// parent reads who the parent of a process is.
func parent(pid int) (int, bool) {
	fields, ok := stat(pid)
	if !ok || len(fields) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(fields[1])
	return n, err == nil
}

// stat reads the fields of /proc/PID/stat from the third, the state, on, see
// proc_pid_stat(5). The name before may hold anything.
func stat(pid int) ([]string, bool) {
	b, ok := begin(pid, "stat", 4<<10)
	if !ok {
		return nil, false
	}
	i := strings.LastIndexByte(string(b), ')')
	return strings.Fields(string(b[i+1:])), i >= 0
}
