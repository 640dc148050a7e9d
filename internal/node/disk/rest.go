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

// DropCaches writes back dirty pages and drops the page cache, dentries and inodes of the
// whole node (Documentation/admin-guide/sysctl/vm.rst). Other programs then have to read
// their files again. It needs root. Pages that are mapped, being written or on a tmpfs
// stay. The write-back can take minutes and cannot be cancelled. If ctx ends, DropCaches
// returns while it goes on, and nothing is dropped.
func DropCaches(ctx context.Context) error {
	return dropAfter(ctx, unix.Sync, func() error { return os.WriteFile(dropCaches, []byte("3"), 0) })
}

func dropAfter(ctx context.Context, sync func(), drop func() error) error {
	done := make(chan error, 1)
	go func() {
		sync()
		if ctx.Err() == nil {
			done <- drop()
		}
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

// MayDropCaches returns the error with which DropCaches would fail, without dropping
// anything.
func MayDropCaches() error {
	f, err := os.OpenFile(dropCaches, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return f.Close()
}

// A device is idle if steady looks in a row find no request in flight and at most idle
// bytes moved. Timers, journals and logs of a node move less than that.
const (
	look   = 50 * time.Millisecond
	steady = 3
	idle   = 256 << 10
)

// Rest waits until the devices are idle. It reports false after the time most.
func Rest(ctx context.Context, root machine.Root, names []string, most time.Duration) bool {
	if len(names) == 0 {
		return true
	}
	calm, last := 0, int64(-1)
	var err error
	return machine.Await(ctx, most, look, func() bool {
		var moved int64
		var busy bool
		moved, busy, err = moving(root, names)
		if calm++; last < 0 || busy || moved-last > idle {
			calm = 0
		}
		last = moved
		return err != nil || calm >= steady
	}) && err == nil
}

// moving returns how many bytes the devices have moved since boot, and whether a request
// is in flight.
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
