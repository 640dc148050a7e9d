package ready

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// occupied says that somebody listens at a port of this machine already.
func occupied(port int) error {
	d := dial{to: netip.AddrPortFrom(loopback, uint16(port))}
	defer d.close()
	if _, err := d.poll(context.Background(), 0); err != nil {
		return nil
	}
	return fmt.Errorf("something else listened on port %d of this machine before: end it, or give the workload another port", port)
}

// network asks over the container's own address, or on the loopback of its network,
// into which this thread goes for that and stays.
func (w *watch) network(at subject.Reached, started bool) (poller, error) {
	address := loopback
	switch {
	case at.Host:
		if err := w.alone(); err != nil {
			return nil, err
		}
	case at.Pid != 0 && !at.Guest, at.Sharing != 0 && started:
		shared, err := enter(cmp.Or(at.Pid, at.Sharing))
		if err == nil && (shared || at.Pid == 0) {
			err = w.alone()
		} else if err == nil {
			err = bringUp()
		}
		if err != nil {
			return nil, err
		}
	case at.Address != "" && (at.Guest || started): // one whose process is told later is better asked on its loopback
		var err error
		if address, err = netip.ParseAddr(at.Address); err != nil {
			return nil, fmt.Errorf("the engine says that its address is %.60q", at.Address)
		}
		if at.Near != 0 {
			if _, err := enter(at.Near); err != nil {
				return nil, err
			}
		}
	case at.Why != "":
		return nil, errors.New(at.Why)
	default:
		return nil, errNotYet
	}
	to := netip.AddrPortFrom(address, uint16(w.is.Port))
	if w.is.By == setting.ReadyTCP {
		return &dial{to: to}, nil
	}
	return &request{dial: dial{to: to}, is: w.is, answering: answering}, nil
}

// alone says what is wrong with workloads that listen on this machine's own network.
func (w *watch) alone() error {
	if w.taken == nil && w.lanes > 1 {
		return fmt.Errorf("%d workloads have this machine's own network, and only one can listen on port %d: give each its own (--network bridge), or have one at once", w.lanes, w.is.Port)
	}
	return w.taken
}

// enter takes this thread into the network of a process. shared says that it is there
// already.
func enter(pid int) (shared bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, fmt.Errorf("process %d: pidfd_open: %w", pid, err)
	}
	defer unix.Close(fd)
	var own, its unix.Stat_t
	if err := errors.Join(unix.Stat("/proc/thread-self/ns/net", &own), unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &its)); err == nil && own.Ino == its.Ino && own.Dev == its.Dev {
		return true, nil
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return false, fmt.Errorf("enter the network of process %d: setns: %w; run tare as root", pid, err)
	}
	return false, nil
}

// bringUp brings up the loopback of a container where nobody else would: the floor's.
func bringUp() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil && lo.Attrs().RawFlags&unix.IFF_UP == 0 {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("bring up the container's loopback: %w", err)
	}
	return nil
}

// dial is ready when a connection is accepted. It waits only briefly for an answer, and
// goes on waiting for it beside later ones: a sandbox that is not up yet gives none, and a
// busy one is slow.
type dial struct {
	to   netip.AddrPort
	open []attempt // without an answer, the oldest first
}

type attempt struct {
	fd    int
	began int64
}

const (
	answered = time.Millisecond // how long a poll waits
	maxOpen  = 64
)

func (d *dial) poll(_ context.Context, began int64) (int64, error) {
	fd, vain, err := d.connect(began)
	if err == nil {
		unix.Close(fd)
	}
	return vain, err
}

func (d *dial) close() {
	for _, a := range d.open {
		unix.Close(a.fd)
	}
	d.open = nil
}

// connect begins one more attempt, and is done with the first that has been accepted. All
// is plain system calls on this very thread: the library's may be made on another one,
// which is elsewhere.
func (d *dial) connect(began int64) (fd int, vain int64, err error) {
	if fd, err = begin(d.to); err != nil {
		return -1, began, fmt.Errorf("connect to %v: %w", d.to, err)
	}
	d.open = append(d.open, attempt{fd, began})
	waiting := make([]unix.PollFd, len(d.open))
	for i, a := range d.open {
		waiting[i] = unix.PollFd{Fd: int32(a.fd), Events: unix.POLLOUT}
	}
	_, _ = unix.Poll(waiting, int(answered.Milliseconds())) // what is not there then is there the next time
	last := error(unix.ETIMEDOUT)
	var open []attempt
	fd = -1
	for i, a := range d.open {
		switch {
		case fd >= 0: // one before was accepted
			unix.Close(a.fd)
		case waiting[i].Revents == 0 && (len(d.open) < maxOpen || i > 0):
			open = append(open, a)
		case accepted(a.fd, waiting[i].Revents, &last):
			fd = a.fd
			if i > 0 { // those before it have been lost
				vain = max(vain, d.open[i-1].began)
			}
		default:
			unix.Close(a.fd)
			vain = a.began
		}
	}
	if d.open = open; fd >= 0 {
		d.close()
		return fd, vain, nil
	}
	return -1, vain, fmt.Errorf("connect to %v: %w", d.to, last)
}

// accepted tells whether a connection has been, or else, once, why not.
func accepted(fd int, events int16, why *error) bool {
	if events == 0 {
		return false
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err == nil { // an end that was told of before is told of no more
		_, err = unix.Getpeername(fd)
	}
	if err != nil {
		*why = err
	}
	return err == nil
}

// begin begins a connection.
func begin(to netip.AddrPort) (fd int, err error) {
	family, address := unix.AF_INET, unix.Sockaddr(nil)
	if to.Addr().Is4() {
		address = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	} else {
		family, address = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	if fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, address); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// request is ready when it has been answered with the status.
type request struct {
	dial
	is    setting.Readiness
	asked int64 // when the last began

	answering time.Duration // how long it may wait for all of its answer
}

// answering is how long one request may wait for all of its answer, and maxAnswer how much
// of that is read.
const (
	answering = 10 * time.Second
	maxAnswer = 1 << 20
)

func (r *request) poll(ctx context.Context, began int64) (int64, error) {
	fd, vain, err := r.connect(began)
	if err != nil {
		return vain, err
	}
	limit := unix.NsecToTimeval(int64(r.answering))
	if err := errors.Join(unix.SetNonblock(fd, false), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)); err != nil {
		unix.Close(fd)
		return began, err
	}
	r.asked = began
	conn := os.NewFile(uintptr(fd), "connection") // blocking, so that it is read on this thread
	// All of the answer has that long: of one that never ends each piece may come in time.
	ctx, cancel := context.WithTimeout(ctx, r.answering)
	defer cancel()
	var lock sync.Mutex
	open := true // beyond that its number may be another file's
	defer func() {
		lock.Lock()
		defer lock.Unlock()
		open = false
		conn.Close()
	}()
	defer context.AfterFunc(ctx, func() {
		lock.Lock()
		defer lock.Unlock()
		if open {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
	})()
	if err := errors.Join(ask(conn, r.to, r.is), ctx.Err()); err != nil { // to a reader what was cut off is over
		return began, err
	}
	return vain, nil
}

func ask(conn io.ReadWriter, to netip.AddrPort, is setting.Readiness) error {
	ask, err := http.NewRequest(http.MethodGet, "http://"+to.String()+is.Path, http.NoBody)
	if err != nil {
		return err
	}
	ask.Close = true
	ask.Header.Set("User-Agent", "tare")
	if err := ask.Write(conn); err != nil {
		return fmt.Errorf("GET %s: %w", is.Path, err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), ask)
	if err != nil {
		return fmt.Errorf("GET %s: %w", is.Path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != is.Status {
		return fmt.Errorf("GET %s: status %d, not %d", is.Path, answer.StatusCode, is.Status)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("GET %s: its body: %w", is.Path, err)
	}
	return nil
}
