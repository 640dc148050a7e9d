// Package thread runs functions on threads whose state differs from the rest of the
// process, such as in other namespaces. Such a thread runs nothing else.
package thread

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Apart calls f on a separate thread that ends with f, so f may change the state of the
// thread. f must return.
//
// It never uses the process's first thread. That thread lives as long as the process, and
// /proc/self shows its state as that of the process.
func Apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// Hold this thread, so that the next one is not the first again.
			err := Apart(f)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// Parent calls f on a thread that lives until ctx ends. A process that f starts with
// Pdeathsig is killed when that thread ends, independent of tare's other threads.
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

// InMounts calls f in another mount namespace, given as an open /proc/PID/ns/mnt or a pidfd
// (Linux 5.8). Processes that f starts are in that namespace.
func InMounts(namespace int, f func() error) error {
	return Apart(func() error {
		if err := EnterMounts(namespace); err != nil {
			return err
		}
		return f()
	})
}

// EnterMounts moves the calling thread into a mount namespace. The thread cannot return, so
// it must be one of [Apart].
func EnterMounts(namespace int) error {
	// Threads of a process share their root and working folder, and setns rejects such
	// threads.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare(CLONE_FS): %w", err)
	}
	if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace: setns: %w", err)
	}
	return nil
}
