package datapath

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// partVariable makes the test binary run as the part named by its value.
const partVariable = "TARE_TEST_DATAPATH"

func TestMain(m *testing.M) {
	switch os.Getenv(partVariable) {
	case "client":
		client(os.Stdin)
	case "listener":
		listener()
	case "attach":
		attachAndHang(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

// client connects as each line requests, "tcp|udp ADDRESS TIMES", and prints the number
// of successes. It binds to loopback, so connections to other addresses never leave the
// machine.
func client(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		times, _ := strconv.Atoi(words[2])
		reached := 0
		for range times {
			if knock(words[0], words[1]) {
				reached++
			}
		}
		fmt.Println(reached)
	}
}

func knock(network, address string) bool {
	d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	if network == "udp" {
		d.LocalAddr = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	}
	c, err := d.Dial(network, address)
	if err != nil {
		return false
	}
	defer c.Close()
	if network == "udp" {
		return true
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.ReadFull(c, make([]byte, 1))
	return err == nil
}

// listener prints its address and closes accepted connections until it is stopped.
func listener() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func attachAndHang(path string) {
	d, err := Attach(Options{Cgroup: path, Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:9")})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(d.IDs()[0], d.IDs()[1])
	time.Sleep(time.Minute)
	_ = d.Close()
}

// part starts the test binary as a part, in a cgroup unless that is "".
func part(t *testing.T, group, name string, args ...string) (*exec.Cmd, io.Writer, *bufio.Reader) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), partVariable+"="+name)
	c.Stderr = os.Stderr
	if group != "" {
		f := must.Get(os.Open(group))(t)
		defer f.Close()
		c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	}
	in := must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, in, bufio.NewReader(out)
}

// clientIn starts a client in a cgroup and returns a function that makes it connect.
func clientIn(t *testing.T, group string) func(network string, to netip.AddrPort, times int) (reached int) {
	t.Helper()
	_, in, out := part(t, group, "client")
	return func(network string, to netip.AddrPort, times int) int {
		t.Helper()
		fmt.Fprintln(in, network, to, times)
		line := must.Get(out.ReadString('\n'))(t)
		return must.Get(strconv.Atoi(strings.TrimSpace(line)))(t)
	}
}

// backend listens on loopback and sends one byte on every connection.
type backend struct {
	at  netip.AddrPort
	got atomic.Int64
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	b := &backend{at: l.Addr().(*net.TCPAddr).AddrPort()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.got.Add(1)
			_, _ = c.Write([]byte{'x'})
			c.Close()
		}
	}()
	return b
}

// group returns a new cgroup v2 of tare for this test.
func group(t *testing.T) string {
	t.Helper()
	need.Root(t)
	name := strings.NewReplacer("/", "-", "_", "-", ",", "").Replace(t.Name())
	path, remove, err := Place(fmt.Sprintf("%.40s-%d-%d", name, os.Getpid(), groups.Add(1)))
	if errors.Is(err, errUnsupported) {
		t.Skip(err)
	}
	must.OK(t, err)
	t.Cleanup(func() {
		check.Error(t, remove(), "")
	})
	return path
}

var groups atomic.Int64

// attached attaches a datapath for this test. Missing options get defaults.
func attached(t *testing.T, o Options) *Datapath {
	t.Helper()
	if o.Cgroup == "" {
		o.Cgroup = group(t)
	}
	if !o.Backend.IsValid() {
		o.Backend = netip.MustParseAddrPort("127.0.0.1:9")
	}
	o.Most = max(o.Most, 1)
	d, err := Attach(o)
	if errors.Is(err, errUnsupported) {
		t.Skip(err)
	}
	must.OK(t, err)
	t.Cleanup(func() {
		check.Error(t, d.Close(), "")
	})
	return d
}

// counting enables the kernel's run statistics for the duration of the test.
func counting(t *testing.T) {
	t.Helper()
	off := must.Get(ebpf.EnableStats(unix.BPF_STATS_RUN_TIME))(t)
	t.Cleanup(func() { off.Close() })
}

// runs returns the kernel's counters of a program.
func runs(t *testing.T, id uint32) (count int64, spent time.Duration) {
	t.Helper()
	p := must.Get(ebpf.NewProgramFromID(ebpf.ProgramID(id)))(t)
	defer p.Close()
	s := must.Get(p.Stats())(t)
	return int64(s.RunCount), s.Runtime
}
