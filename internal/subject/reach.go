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

// Reachable is a session whose containers can be polled from outside.
type Reachable interface {
	// Reach returns where the container on a lane can be reached. It is partly known when the
	// operation is prepared, and fully when it is done. Reach makes no calls, and any goroutine
	// may call it at any time.
	Reach(lane int) Reached
	// Ended returns how the first process on a lane ended.
	Ended(ctx context.Context, lane int) Ended
}

// Reached is where a container can be reached from this machine.
type Reached struct {
	// Pid is a process in the container's namespaces, 0 if not known yet. Host means that the
	// container has no namespaces of its own: its ports and files are the machine's.
	Pid  int
	Host bool
	// Own reports whether a process is the container's. It verifies a pid from a runtime or an
	// engine before a signal is sent; nil confirms none.
	Own func(pid int) bool
	// Guest means that the container's network and files are in a guest kernel, not in the
	// namespaces of its processes.
	Guest bool
	// Address is the container's own, "" for none. Near is a process in whose network it can be
	// reached, such as the engine; 0 for tare's network.
	Address string
	Near    int
	// Sharing is a process that shares the container's network, for use if Pid is unknown; 0
	// for none. For pods in the host's network it is the engine.
	Sharing int
	// Log is the file of its output; "" for none. Plain means that it has no engine's format.
	Log   string
	Plain bool
	// Why is the reason why the container cannot be reached over the network, with advice; ""
	// if it can.
	Why string
}

// Network returns the address of a server in the container, and the network namespace in which
// it is valid, nil for that of this process. The caller closes the file.
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
	return "", nil, errors.New("the target does not report its workload's address")
}

// Ended is the end of a container's first process.
type Ended struct {
	Exit   int    // 128+n for signal n; meaningless unless Known
	Known  bool   // whether it has ended, and how, is known
	Output string // the end of its output
	Why    string // a further reason, "" for none
	Advice string // for that reason
}

// Minded is a session that supervises the programs in its containers.
type Minded interface {
	// Over returns the lanes on which a program ended before its stop, as far as that is known,
	// and the failure of the first of them.
	Over(ctx context.Context, lanes []int) (over []int, first *record.Failure)
}

// Over returns the result of a Minded session, nothing for others.
func Over(ctx context.Context, s Session, lanes []int) (over []int, first *record.Failure) {
	if m, is := As[Minded](s); is {
		return m.Over(ctx, lanes)
	}
	return nil, nil
}

// wrapped is a session that adds something to another one.
type wrapped interface{ Unwrap() Session }

// As returns s, or a session that it wraps, as a T.
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

// Asked returns the URL of the workload on a lane. plan is a URL without a host. It also
// returns the network namespace in which the URL is valid, see [Reached.Network].
func Asked(s Session, lane int, plan string) (address string, namespace *os.File, err error) {
	u, err := url.Parse(plan)
	if err != nil {
		return "", nil, fmt.Errorf("the load's URL: %w", err)
	}
	reachable, is := As[Reachable](s)
	if !is {
		return "", nil, errors.New("the target does not report its workloads' addresses")
	}
	at := reachable.Reach(lane)
	host, namespace, err := at.Network()
	if err != nil {
		return "", nil, err
	}
	u.Host = net.JoinHostPort(host, u.Port())
	return u.String(), namespace, nil
}
