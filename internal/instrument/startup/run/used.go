package run

import (
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/machine"
)

// apart is how far apart the moments are at which it is read what processes have used: a
// fifth of the shortest gap of which that says whose it is. After each many of them it
// is twice as long, so that there are a few thousand of a start of an hour.
const (
	apart = 20 * time.Millisecond
	many  = 512
)

// follower reads what the watched processes have used while a start is under way.
type follower struct {
	watch  Watch
	stop   chan struct{}
	done   chan struct{}
	all    []proctree.Used
	guests []int // those that run a guest at the end
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

// end stops it after a last look. To end it twice, or without a beginning, does nothing.
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
