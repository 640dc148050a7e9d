// Package thread does work on threads that are not like the others of the
// process any more, and that nothing else is ever done on: in other namespaces,
// say.
package thread

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart calls f on a thread that ends with it, whatever f makes of that thread.
// f has to return.
//
// It is never the process's first thread: that one does not end before the
// process does, and what it is the whole process seems to be, since /proc/self
// shows it.
func Apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// Kept meanwhile, so that the next one cannot be the first again.
			err := Apart(f)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// Parent calls f on a thread that stays until ctx ends. A process that f starts with
// Pdeathsig is killed when the thread ends that started it, whatever becomes of tare's
// others.
func Parent(ctx context.Context, f func() error) error {
	begun := make(chan error)
	go func() {
		_ = Apart(func() error {
			begun <- f()
			<-ctx.Done()
			return nil
		})
	}()
	return <-begun
}

// InMounts calls f in another mount namespace: that of an open
// /proc/PID/ns/mnt, or of the process of a pidfd (Linux 5.8). What f starts is
// born there.
func InMounts(namespace int, f func() error) error {
	return Apart(func() error {
		if err := EnterMounts(namespace); err != nil {
			return err
		}
		return f()
	})
}

// EnterMounts takes the calling thread into a mount namespace, from which it does
// not come back: it has to be one that is [Apart].
func EnterMounts(namespace int) error {
	// Threads of one process share their root and working folder, and setns
	// takes none that does.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare(CLONE_FS): %w", err)
	}
	if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace: setns: %w", err)
	}
	return nil
}
