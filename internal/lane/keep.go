package lane

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// Pid returns the pid of the workload that a lane itself makes, or 0 before it exists. It is
// safe for concurrent use.
func (p *Pool) Pid(lane int) int { return int(atomic.LoadInt32(&p.mem.slot(lane).Pid)) }

// Owns reports whether a lane made a process and waits for it.
func (p *Pool) Owns(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && slices.Contains(p.procs, s.PPid)
}

// MaxKept limits the stored output of a workload. Further output is read and discarded, so the
// workload never blocks.
const MaxKept = 256 << 20

// keeper writes the output that a lane's workload prints between two orders to a file.
// During an order the lane itself reads the output.
type keeper struct {
	file  *os.File
	pipes []*os.File // read ends of stdout and stderr
	room  int64
	lock  sync.Mutex
	done  sync.WaitGroup
}

// keep starts to store a lane's output in a file. The file begins with read, the output that
// the lane has already read.
func (p *Pool) keep(lane int, path, read string) error {
	k := &keeper{room: MaxKept}
	var err error
	if k.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return fmt.Errorf("keep the workload's output: %w", err)
	}
	if k.pipes, err = readingEnds(p.procs[lane]); err != nil {
		k.close()
		return fmt.Errorf("keep the workload's output: %w", err)
	}
	k.write([]byte(read))
	for _, pipe := range k.pipes {
		k.done.Go(func() { k.copy(pipe) })
	}
	p.keepers[lane] = k
	return nil
}

// letGo stops storing a lane's output. It is called before an order and before the pool
// closes.
func (p *Pool) letGo(lane int) {
	k := p.keepers[lane]
	if k == nil {
		return
	}
	delete(p.keepers, lane)
	for _, pipe := range k.pipes {
		_ = pipe.SetReadDeadline(time.Unix(1, 0))
	}
	k.done.Wait()
	k.close()
}

func (k *keeper) close() {
	for _, f := range append(k.pipes, k.file) {
		f.Close()
	}
}

func (k *keeper) copy(pipe *os.File) {
	piece := make([]byte, 64<<10)
	for {
		n, err := pipe.Read(piece)
		k.write(piece[:n])
		if err != nil { // stopped, or the lane has died
			return
		}
	}
}

func (k *keeper) write(text []byte) {
	k.lock.Lock()
	defer k.lock.Unlock()
	n, err := k.file.Write(text[:min(k.room, int64(len(text)))])
	if k.room -= int64(n); err != nil {
		k.room = 0 // the disk is full
	}
}

// readingEnds opens the reading ends of a lane's two output pipes in the order of their
// creation.
func readingEnds(pid int) (ends []*os.File, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { // all names are numbers
		return cmp.Or(cmp.Compare(len(a.Name()), len(b.Name())), cmp.Compare(a.Name(), b.Name()))
	})
	for _, e := range entries {
		var is unix.Stat_t
		path := dir + "/" + e.Name()
		info, err := e.Info()
		if err != nil || info.Mode()&0o200 != 0 || unix.Stat(path, &is) != nil || is.Mode&unix.S_IFMT != unix.S_IFIFO {
			continue // a read-only descriptor: its link has no w
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return ends, err
		}
		ends = append(ends, f)
	}
	if len(ends) != 2 {
		return ends, fmt.Errorf("the lane has %d pipes to read from, want 2", len(ends))
	}
	return ends, nil
}
