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

// occupied returns an error if something already listens on a port of this machine.
func occupied(port int) error {
	d := dial{to: netip.AddrPortFrom(loopback, uint16(port))}
	defer d.close()
	if _, err := d.poll(context.Background(), 0); err != nil {
		return nil
	}
	return fmt.Errorf("port %d of this machine was already in use: stop that listener, or give the workload another port", port)
}

// network polls the container's own address, or the loopback of its network, which this thread
// enters for good.
func (w *watch) network(at subject.Reached, started bool) (poller, error) {
	address := loopback
	switch {
	case at.Host:
		if err := w.checkShared(); err != nil {
			return nil, err
		}
	case at.Pid != 0 && !at.Guest, at.Sharing != 0 && started:
		shared, err := enter(cmp.Or(at.Pid, at.Sharing))
		if err == nil && (shared || at.Pid == 0) {
			err = w.checkShared()
		} else if err == nil {
			err = bringUp()
		}
		if err != nil {
			return nil, err
		}
	case at.Address != "" && (at.Guest || started): // a process that is known later is polled on its loopback
		var err error
		if address, err = netip.ParseAddr(at.Address); err != nil {
			return nil, fmt.Errorf("invalid address %.60q from the engine", at.Address)
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

// checkShared returns why workloads in this machine's own network cannot be polled.
func (w *watch) checkShared() error {
	if w.taken == nil && w.lanes > 1 {
		return fmt.Errorf("%d workloads share this machine's network, and only one can listen on port %d: use --network bridge, or one at a time", w.lanes, w.is.Port)
	}
	return w.taken
}

// enter moves this thread into the network of a process. shared means that it is already there.
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

// bringUp brings up the loopback of a container, for the floor, where nothing else does.
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

// dial is ready when a connection is accepted. A poll waits only shortly for an answer, and
// earlier attempts stay open: a sandbox that is not up gives no answer, and a busy one is slow.
type dial struct {
	to   netip.AddrPort
	open []attempt // unanswered, oldest first
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

// connect makes one more attempt, and returns the first accepted connection. It uses system
// calls on this thread only: the net package may use threads that are in another network.
func (d *dial) connect(began int64) (fd int, vain int64, err error) {
	if fd, err = startConnect(d.to); err != nil {
		return -1, began, fmt.Errorf("connect to %v: %w", d.to, err)
	}
	d.open = append(d.open, attempt{fd, began})
	waiting := make([]unix.PollFd, len(d.open))
	for i, a := range d.open {
		waiting[i] = unix.PollFd{Fd: int32(a.fd), Events: unix.POLLOUT}
	}
	_, _ = unix.Poll(waiting, int(answered.Milliseconds())) // later answers count at the next poll
	last := error(unix.ETIMEDOUT)
	var open []attempt
	fd = -1
	for i, a := range d.open {
		switch {
		case fd >= 0: // an earlier one was accepted
			unix.Close(a.fd)
		case waiting[i].Revents == 0 && (len(d.open) < maxOpen || i > 0):
			open = append(open, a)
		case accepted(a.fd, waiting[i].Revents, &last):
			fd = a.fd
			if i > 0 { // earlier ones were lost
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

// accepted reports whether a connection was accepted; else it sets why once.
func accepted(fd int, events int16, why *error) bool {
	if events == 0 {
		return false
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err == nil { // an error is reported only once
		_, err = unix.Getpeername(fd)
	}
	if err != nil {
		*why = err
	}
	return err == nil
}

// startConnect starts a non-blocking connect.
func startConnect(to netip.AddrPort) (fd int, err error) {
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

// request is ready when it is answered with the status.
type request struct {
	dial
	is    setting.Readiness
	asked int64 // when the last one was sent

	answering time.Duration // time limit of an answer
}

// answering is the time limit of a whole answer, and maxAnswer its size limit.
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
	// The limit is for the whole answer: each piece of an endless one may come in time.
	ctx, cancel := context.WithTimeout(ctx, r.answering)
	defer cancel()
	var lock sync.Mutex
	open := true // once closed, its number may be reused
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
	if err := errors.Join(ask(conn, r.to, r.is), ctx.Err()); err != nil { // an answer that was cut off looks complete
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
		return fmt.Errorf("GET %s: status %d, expected %d", is.Path, answer.StatusCode, is.Status)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("GET %s: its body: %w", is.Path, err)
	}
	return nil
}
