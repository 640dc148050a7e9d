package load

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// alarm wakes one goroutine at given times. It is a kernel timer in the runtime's poller: the
// runtime's timers are up to 1 ms late in an idle process.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timer")}, nil
}

// until sleeps until a time of CLOCK_MONOTONIC (ns). It returns an error after Close.
func (a *alarm) until(at int64) error {
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at, 1))}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	}); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("set a timer: %w", failed)
	}
	var times [8]byte // number of expirations
	_, err = a.file.Read(times[:])
	return err
}
