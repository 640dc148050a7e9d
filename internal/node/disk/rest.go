package disk

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

const dropCaches = "/proc/sys/vm/drop_caches"

// DropCaches writes back what is dirty and drops the page cache, dentries and
// inodes of the whole node (Documentation/admin-guide/sysctl/vm.rst): what other
// programs had in it they have to read again. It needs root. What a program has
// mapped, is being written, or lies on a tmpfs stays. To write back takes minutes
// where much is dirty or a server of files hangs, and cannot be taken back: when ctx
// ends it is left to itself, and nothing is dropped after it.
func DropCaches(ctx context.Context) error {
	return dropAfter(ctx, unix.Sync, func() error { return os.WriteFile(dropCaches, []byte("3"), 0) }) // what is dirty is not dropped
}

func dropAfter(ctx context.Context, sync func(), drop func() error) error {
	done := make(chan error, 1)
	go func() {
		sync()
		err := ctx.Err()
		if err == nil {
			err = drop()
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return nil
}

// MayDropCaches is why DropCaches would fail, and drops nothing.
func MayDropCaches() error {
	f, err := os.OpenFile(dropCaches, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return f.Close()
}

// A device is at rest when it has nothing in flight and moved nothing for three
// looks, a twentieth of a second apart.
const (
	look   = 50 * time.Millisecond
	steady = 3
	// idle is what a node's own timers, journals and logs may move between two
	// looks.
	idle = 256 << 10
)

// Rest waits until devices are at rest, at most for a time, and tells whether
// they are. None are.
func Rest(ctx context.Context, root machine.Root, names []string, most time.Duration) bool {
	if len(names) == 0 {
		return true
	}
	deadline := time.Now().Add(most)
	calm := 0
	last := int64(-1)
	for {
		moved, busy, err := moving(root, names)
		if err != nil {
			return false
		}
		if last >= 0 && !busy && moved-last <= idle {
			calm++
		} else {
			calm = 0
		}
		last = moved
		switch {
		case calm >= steady:
			return true
		case ctx.Err() != nil, time.Now().After(deadline):
			return false
		}
		_ = machine.Sleep(ctx, look)
	}
}

// moving is how many bytes devices have moved since boot, and whether one of
// them has requests in flight.
func moving(root machine.Root, names []string) (sum int64, busy bool, err error) {
	text, err := root.Read("/proc/diskstats", StatsLimit)
	if err != nil {
		return 0, false, err
	}
	for line := range bytes.Lines(text) {
		name, _ := machine.Field(line, fieldName)
		if u, flying, ok := counters(line); ok && slices.Contains(names, string(name)) {
			sum += u.ReadBytes + u.WriteBytes
			busy = busy || flying
		}
	}
	return sum, busy, nil
}
