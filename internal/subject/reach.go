package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/tare-bench/tare/record"
)

// Reachable is a session whose containers can be asked from outside whether they are
// ready.
type Reachable interface {
	// Reach says where the container on a lane can be reached, as far as that is known:
	// some of it when the operation is prepared, the rest when it has been done. It asks
	// nobody, and may be called by any goroutine at any time.
	Reach(lane int) Reached
	// Ended says how the first process on a lane ended that is there no more.
	Ended(ctx context.Context, lane int) Ended
}

// Reached is where a container can be reached from this machine.
type Reached struct {
	// Pid is a process of this machine in the container's namespaces, 0 where none is
	// known yet. Host says that it has none of its own: what it listens on, and its
	// files, are the machine's.
	Pid  int
	Host bool
	// Own tells whether a process is the container's: what a runtime or an engine says of
	// its pid is not believed before a signal is sent. Without it none is.
	Own func(pid int) bool
	// Guest says that the container has a network and files of its own kernel's, which
	// are not to be found in the namespaces of its processes.
	Guest bool
	// Address is the container's own, "" where there is none; Near is a process in whose
	// network it is reached, as the engine's, 0 for tare's own.
	Address string
	Near    int
	// Sharing is a process whose network the container has, where its own process is not
	// known: the engine, for pods in the host's network. 0 for none.
	Sharing int
	// Log is the file that its output comes into; "" where it is in none. Plain says
	// that it is there as it was written, and not in an engine's form.
	Log   string
	Plain bool
	// Why is what keeps it from being reached over the network, and what would change
	// that; "" for nothing.
	Why string
}

// Network is where a server in the container is asked: an address, and the network
// namespace that one has to be in for that, nil for that of this process. The file is the
// caller's to close.
func (r *Reached) Network() (address string, namespace *os.File, err error) {
	const loopback = "127.0.0.1"
	switch {
	case r.Host:
		return loopback, nil, nil
	case r.Pid != 0 && !r.Guest, r.Sharing != 0:
		if namespace, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", cmp.Or(r.Pid, r.Sharing))); err != nil {
			return "", nil, fmt.Errorf("open the network of the container: %w", err)
		}
		return loopback, namespace, nil
	case r.Address != "":
		return r.Address, nil, nil
	case r.Why != "":
		return "", nil, errors.New(r.Why)
	}
	return "", nil, errors.New("the target does not say where its workload is reached")
}

// Ended is the end of a container's first process.
type Ended struct {
	Exit   int    // 128+n for signal n; meaningless unless Known
	Known  bool   // that it has ended, and how
	Output string // the last that it said, cut
	Why    string // what is known of it beside that, "" for nothing
	Advice string // what to do about that
}

// Minded is a session that minds the programs in its containers.
type Minded interface {
	// Over are those of the lanes on which a program ended though nobody told it to, as far as
	// that can be told, and the failure of the first of them.
	Over(ctx context.Context, lanes []int) (over []int, first *record.Failure)
}

// Over is that of a session, nothing of one that minds none.
func Over(ctx context.Context, s Session, lanes []int) (over []int, first *record.Failure) {
	if m, is := As[Minded](s); is {
		return m.Over(ctx, lanes)
	}
	return nil, nil
}

// wrapped is a session that adds something to another.
type wrapped interface{ Unwrap() Session }

// As is the session, or the one within it, as one that can more.
func As[T any](s Session) (more T, ok bool) {
	for s != nil {
		if more, ok = s.(T); ok {
			return more, true
		}
		w, is := s.(wrapped)
		if !is {
			break
		}
		s = w.Unwrap()
	}
	return more, false
}

// Asked is the URL by which the workload on a lane is asked, which a plan writes without
// a host, and the network namespace that one has to be in for that, see [Reached.Network].
func Asked(s Session, lane int, plan string) (address string, namespace *os.File, err error) {
	u, err := url.Parse(plan)
	if err != nil {
		return "", nil, fmt.Errorf("the load's URL: %w", err)
	}
	reachable, is := As[Reachable](s)
	if !is {
		return "", nil, errors.New("the target does not say where its workloads are reached")
	}
	at := reachable.Reach(lane)
	host, namespace, err := at.Network()
	if err != nil {
		return "", nil, err
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String(), namespace, nil
}
