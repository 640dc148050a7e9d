package run

import (
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/machine"
)

// apart is the interval of CPU usage samples: a fifth of the shortest gap that they
// explain. The interval doubles after every many samples. A start of an hour therefore
// has only a few thousand.
const (
	apart = 20 * time.Millisecond
	many  = 512
)

// follower samples the CPU usage of the watched processes during a start.
type follower struct {
	watch  Watch
	stop   chan struct{}
	done   chan struct{}
	all    []proctree.Used
	guests []int // processes that run a guest at the end
}

func (f *follower) begin() {
	f.stop, f.done = make(chan struct{}), make(chan struct{})
	f.look()
	go func() {
		defer close(f.done)
		for wait := apart; ; {
			select {
			case <-f.stop:
				return
			case <-time.After(wait):
				f.look()
			}
			if len(f.all)%many == 0 {
				wait *= 2
			}
		}
	}()
}

func (f *follower) look() {
	f.all = append(f.all, proctree.Used{At: machine.Now(), CPU: f.watch.Used()})
}

// end takes a last sample and stops. It does nothing if not running.
func (f *follower) end() {
	if f.stop == nil {
		return
	}
	close(f.stop)
	<-f.done
	f.stop = nil
	f.look()
	for pid := range f.all[len(f.all)-1].CPU {
		if attribution.RunsGuest(pid) {
			f.guests = append(f.guests, pid)
		}
	}
}
