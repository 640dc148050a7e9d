package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Priority is the scheduling of lanes.
type Priority uint32

// Priorities, with the values of the lanes.
const (
	Ordinary Priority = 0
	Nice     Priority = 1 // nice -20
	FIFO     Priority = 2 // SCHED_FIFO 1; not inherited by commands
)

func (p Priority) String() string {
	switch p {
	case FIFO:
		return "SCHED_FIFO"
	case Nice:
		return "nice -20"
	}
	return "ordinary"
}

// Options are the options of a pool.
type Options struct {
	Lanes int
	// Mounts is a mount namespace for the lanes and their commands; nil for tare's.
	Mounts *os.File
	// Env is added to the environment of commands ("NAME=value"), see Environment.
	Env []string
	// Alone makes Env the whole environment of commands.
	Alone bool
}

// Pool is a set of lanes. It is used by one goroutine at a time.
type Pool struct {
	mem      *shared
	abort    int           // eventfd; readable while the lanes must give up
	procs    []int         // pids of the lanes, which cannot be reused before Close reaps them
	patience time.Duration // the longest time-out of the current orders
	owner    sync.WaitGroup
	release  chan struct{} // closed to end the thread that started the lanes
	keepers  map[int]*keeper
}

// NewPool starts the lanes. They end with Close or with tare's process.
func NewPool(o Options) (*Pool, error) {
	env := o.Env
	if !o.Alone {
		env = Environment(o.Env)
	}
	mem, err := newShared(o.Lanes, env)
	if err != nil {
		return nil, err
	}
	abort, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		mem.close()
		return nil, fmt.Errorf("lanes: eventfd: %w", err)
	}
	mem.header().Home = home.Load()
	p := &Pool{mem: mem, abort: abort, release: make(chan struct{}), keepers: map[int]*keeper{}}
	failed := make(chan error, 1)
	// The thread that starts the lanes lives as long as they do: a lane's parent-death signal is
	// bound to it. It is locked, so it ends with this goroutine, after Close has reaped the lanes.
	p.owner.Go(func() {
		runtime.LockOSThread()
		failed <- p.start(o)
		<-p.release
	})
	if err := <-failed; err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Pool) start(o Options) error {
	program, err := programFile()
	if err != nil {
		return err
	}
	defer program.Close()
	// The new descriptors are neither in the runtime's poller nor inherited by children.
	inherit := []*os.File{os.NewFile(uintptr(dup(p.mem.fd)), "lanes"), os.NewFile(uintptr(dup(p.abort)), "abort")}
	defer inherit[0].Close()
	defer inherit[1].Close()
	if o.Mounts != nil {
		inherit = append(inherit, o.Mounts)
	}
	for i := range o.Lanes {
		cmd := exec.Cmd{
			Path:       fmt.Sprintf("/proc/self/fd/%d", program.Fd()),
			Args:       []string{"tare-lane", strconv.Itoa(i), strconv.Itoa(o.Lanes), strconv.Itoa(len(inherit))},
			Env:        []string{},
			ExtraFiles: inherit,
			// A new session protects lanes from Ctrl-C in the terminal.
			SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("lanes: start lane %d of %d: %w", i+1, o.Lanes, err)
		}
		p.procs = append(p.procs, cmd.Process.Pid)
		// Release the handle to save a descriptor per lane, so that a thousand lanes fit
		// the usual limit.
		_ = cmd.Process.Release()
	}
	return nil
}

// dup duplicates a descriptor that children do not inherit.
func dup(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1
	}
	return n
}

// Close ends the lanes and the orphans of their commands. A nil Pool has none.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	for lane := range p.keepers {
		p.letGo(lane)
	}
	p.endStrays()
	for _, pid := range p.procs {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	for _, pid := range p.procs {
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	p.procs = nil
	close(p.release)
	p.owner.Wait()
	p.mem.close()
	unix.Close(p.abort)
}

// priority returns the priority of the lanes. It is known after the first order.
func (p *Pool) priority() Priority {
	return Priority(atomic.LoadUint32(&p.mem.header().Priority))
}

// Batch is a set of orders with lanes that wait at the gate.
type Batch struct {
	pool  *Pool
	lanes []int
	keep  []string // output files, by order
}

// Prepare passes one order to each of the lanes and waits until all of them are at the gate.
func (p *Pool) Prepare(lanes []int, orders []Order) (*Batch, error) {
	if len(lanes) != len(orders) {
		return nil, fmt.Errorf("lanes: %d orders for %d lanes", len(orders), len(lanes))
	}
	for i, n := range lanes {
		if n < 0 || n >= len(p.procs) {
			return nil, fmt.Errorf("lanes: lane %d is not among the %d lanes", n, len(p.procs))
		}
		if err := p.mem.slot(n).put(orders[i]); err != nil {
			return nil, fmt.Errorf("lane %d: %s: %w", n, orders[i], err)
		}
	}
	p.patience = 0
	b := &Batch{pool: p, lanes: lanes}
	for i, o := range orders {
		p.letGo(lanes[i])
		if o.Keep != "" {
			_ = os.Remove(o.Keep) // discard earlier output
		}
		b.keep = append(b.keep, o.Keep)
		p.patience = max(p.patience, o.Timeout)
	}
	h := p.mem.header()
	h.Parked, h.Done, h.WantDone = 0, 0, uint32(len(lanes))
	if len(lanes) == 1 {
		return b, nil // the release wakes it
	}
	atomic.StoreUint32(&h.WantParked, uint32(len(lanes)))
	for _, n := range lanes {
		s := p.mem.slot(n)
		atomic.StoreUint32(&s.Word, wordArmed)
		futexWake(&s.Word, 1)
	}
	if err := p.await(&h.Parked, uint32(len(lanes)), grace); err != nil {
		return nil, err
	}
	return b, nil
}

// Start opens the gate and waits for the last lane. When ctx ends, it kills running commands
// with their process groups. It returns the time of the release and one result per lane, in
// the order of Prepare.
func (b *Batch) Start(ctx context.Context) (released int64, results []Result, err error) {
	p := b.pool
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(p.abort, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(cancelled)
	})
	h := p.mem.header()
	if len(b.lanes) == 1 {
		s := p.mem.slot(b.lanes[0])
		released = machine.Now()
		atomic.StoreUint32(&s.Word, wordAlone)
		futexWake(&s.Word, 1)
	} else {
		released = p.open(h)
	}
	err = p.await(&h.Done, uint32(len(b.lanes)), p.patience+grace)
	if !stop() {
		<-cancelled // the write comes first
		_, _ = unix.Read(p.abort, make([]byte, 8))
	}
	if err != nil {
		return released, nil, err
	}
	results = make([]Result, len(b.lanes))
	for i, n := range b.lanes {
		results[i] = p.mem.slot(n).result()
		if b.keep[i] == "" {
			continue
		}
		if err := p.keep(n, b.keep[i], results[i].Stdout+results[i].Stderr); err != nil {
			return released, nil, fmt.Errorf("lane %d: %w", n, err)
		}
	}
	return released, results, nil
}

// Disarm releases the lanes without performing their orders.
func (b *Batch) Disarm() error {
	for _, n := range b.lanes {
		b.pool.mem.slot(n).Op = uint32(none) // read after the gate is open
	}
	clear(b.keep)
	_, _, err := b.Start(context.Background())
	return err
}

// open releases the lanes. If permitted, it first raises the priority of its thread above
// that of the lanes. Otherwise the first lane to wake would delay the release of the others.
func (p *Pool) open(h *header) (released int64) {
	raised := false
	if p.priority() == FIFO {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		raised = schedule(unix.SCHED_FIFO, 2) == nil
	}
	released = machine.Now() // before the gate opens: a lane that is not asleep starts at once
	atomic.StoreUint32(&h.Gate, h.Gate+1)
	futexWake(&h.Gate, len(p.procs))
	if raised {
		_ = schedule(unix.SCHED_NORMAL, 0) // lowering is always allowed
	}
	return released
}

// Do performs one order on one lane, for operations that are not measured.
func (p *Pool) Do(ctx context.Context, lane int, o Order) (Result, error) {
	b, err := p.Prepare([]int{lane}, []Order{o})
	if err != nil {
		return Result{}, err
	}
	_, r, err := b.Start(ctx)
	if err != nil {
		return Result{}, err
	}
	return r[0], nil
}

var errLost = errors.New("a lane's process has died: was it killed?")

// grace is how long after a timeout a lane may take to report it. The lane first kills the
// command and waits two seconds.
const grace = 15 * time.Second

var errMute = errors.New("a lane's process does not answer: was it stopped or frozen?")

// await sleeps until a counter reaches its goal. It checks periodically that all lanes are
// alive.
func (p *Pool) await(counter *uint32, goal uint32, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		v := atomic.LoadUint32(counter)
		if v >= goal {
			return nil
		}
		if err := futexWait(counter, v, time.Second); errors.Is(err, unix.ETIMEDOUT) && !p.alive() {
			return errLost
		}
		if time.Now().After(deadline) {
			return errMute
		}
	}
}

func (p *Pool) alive() bool {
	for _, pid := range p.procs {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != nil || info.Signo != 0 {
			return false
		}
	}
	return true
}
