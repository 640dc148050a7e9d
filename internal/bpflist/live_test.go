package bpflist

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/bpfstat"
)

// screenOf opens a terminal, see pts(4): the side a person sits at, and the other.
func screenOf(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 12}); err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return person, program
}

func TestTheLiveViewEndsWithAKeyAndGivesTheTerminalBack(t *testing.T) {
	id := busy(t)
	t.Setenv("TERM", "xterm")
	person, program := screenOf(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen bytes.Buffer
	text := func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen.String()
	}
	drawn := make(chan bool)
	go func() {
		defer close(drawn)
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			mu.Lock()
			seen.Write(buffer[:n])
			mu.Unlock()
			if err != nil {
				return // nobody has the terminal any more
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), program, Options{Filter: bpfstat.Filter{IDs: []uint32{id}}, Interval: 50 * time.Millisecond, Watch: true})
	}()
	for until := time.Now().Add(20 * time.Second); strings.Count(text(), "tare_t_list") < 3 || !strings.Contains(text(), "% of the node's"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the terminal shows %.2000q", text())
		}
	}
	if _, err := person.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal's mode is %+v (%v), was %+v", after, err, before)
	}
	program.Close()
	<-drawn
	if shown := text(); !strings.Contains(shown, "\x1b[?1049h") || !strings.Contains(shown, "\x1b[?1049l") {
		t.Errorf("the screen was not taken and given back: %.2000q", shown)
	}
	if statistics(t) {
		t.Error("statistics are still on")
	}
}
