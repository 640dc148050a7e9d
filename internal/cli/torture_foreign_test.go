package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tare-bench/tare/internal/testing/must"
)

// recordsThatAreNone passes invalid and truncated records to tare report.
func recordsThatAreNone(t *testing.T) {
	header := `{"type":"header","schema":1,"run_id":"aaaaaaaa","experiment":"lifecycle","plan":{"targets":["host"],"lanes":[1],"ops":["run"],"rounds":1,"warmup":0,"seed":1}}` + "\n"
	target := `{"type":"target","name":"host","kind":"host","clock":"host","operations":{"run":{"command":"x","done":"exited","means":"y"}}}` + "\n"
	batch := `{"type":"batch","round":1,"phase":"measure","target":"host","op":"run","lanes":1,"released":1,"makespan":10,"samples":[{"lane":0,"begun":2,"stamps":{"exited":12}}]}` + "\n"
	bomb := func(n int64) string {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b)
		if err == nil {
			_, err = io.CopyN(w, zeroes{}, n)
		}
		if err == nil {
			err = w.Close()
		}
		must.OK(t, err)
		return b.String()
	}
	packed := func(text string) string {
		w := must.Get(zstd.NewWriter(nil))(t)
		return string(w.EncodeAll([]byte(text), nil))
	}
	deep := strings.Repeat("[", 100_000)
	for _, c := range []struct{ what, file, text string }{
		{"empty file", "r.jsonl", ""},
		{"a line of 200 MB", "r.jsonl", header + `{"type":"batch","target":"` + strings.Repeat("x", 200<<20) + `"}` + "\n"},
		{"unterminated line", "r.jsonl", header + strings.Repeat("x", 64<<20)},
		{"numbers out of range", "r.jsonl", header + target + strings.Replace(batch, `"makespan":10`, `"makespan":1e400`, 1)},
		{"negative numbers", "r.jsonl", header + target + strings.Replace(batch, `"makespan":10`, `"makespan":-9223372036854775808`, 1)},
		{"strings instead of numbers", "r.jsonl", header + target + strings.Replace(batch, `"lanes":1`, `"lanes":"one"`, 1)},
		{"lists instead of strings", "r.jsonl", header + strings.Replace(target, `"host"`, `["host"]`, 1)},
		{"null values", "r.jsonl", `{"type":"header","schema":null,"run_id":null,"experiment":null,"plan":null}` + "\n"},
		{"newer schema", "r.jsonl", strings.Replace(header, `"schema":1`, `"schema":999999`, 1)},
		{"lane 2^62", "r.jsonl", header + target + strings.Replace(batch, `"lane":0`, `"lane":4611686018427387904`, 1)},
		{"deep nesting", "r.jsonl", header + deep + "\n"},
		{"truncated line", "r.jsonl", (header + target + batch)[:len(header)+len(target)+40]},
		{"a million empty lines", "r.jsonl", header + strings.Repeat("\n", 1_000_000)},
		{"escape sequences in names", "r.jsonl", header + strings.Replace(target, `"name":"host"`, `"name":"\u001b[2J\u001b]0;x\u0007host"`, 1)},
		{"binary data", "r.jsonl", header + string([]byte{0xff, 0xfe, 0, 0x80, '\n'})},
		{"NUL bytes", "r.jsonl", strings.Repeat("\x00", 1<<20)},
		{"a zstd bomb", "r.jsonl.zst", bomb(2 << 30)},
		{"a zstd bomb after a record", "r.jsonl.zst", packed(header+target+batch) + strings.Repeat(packed(strings.Repeat(strings.Repeat(" ", 1<<10-1)+"\n", 32<<10)), 30)},
		{"90,000 batches", "r.jsonl", header + target + strings.Repeat(batch, 90_000)},
		{"label with a formula", "r.jsonl", header + target + batch + `{"type":"label","key":"=cmd|'/C calc'!A0","value":"\u001b[2J"}` + "\n"},
		{"truncated zstd", "r.jsonl.zst", bomb(1 << 20)[:20]},
		{"not zstd", "r.jsonl.zst", "this is not zstd"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			must.Write(t, path, c.text)
			for _, format := range []string{"text", "json", "csv", "benchfmt"} {
				if !torturing && format != "text" {
					continue
				}
				cmd, stdout, stderr := started(t, dir, "report", path, "--format", format)
				began := time.Now()
				most := peak(t, cmd.Process.Pid, func() { _ = cmd.Wait() })
				code := cmd.ProcessState.ExitCode()
				wrong := code < 0 || code > 2 || strings.Contains(stderr.String(), "goroutine ") || strings.ContainsRune(stdout.String()+stderr.String(), 0x1b) ||
					most > 512<<20 || time.Since(began) > time.Minute || len(stdout.String())+len(stderr.String()) > 1<<20
				if wrong {
					t.Errorf("%s: exit %d after %v with %d MiB\n%.2000s%.2000s", format, code, time.Since(began), most>>20, stdout, stderr)
				}
			}
		})
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// peak returns the highest sampled memory of a process while do runs.
func peak(t *testing.T, pid int, do func()) (most int64) {
	t.Helper()
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, _ := strings.Cut(string(text), "VmHWM:")
			var kib int64
			if n, _ := fmt.Sscan(rest, &kib); n == 1 {
				most = max(most, kib<<10)
			}
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	do()
	close(end)
	<-ended
	return most
}

// daemonsThatDoNotAnswer replaces the sockets of engines with broken servers. tare must
// report that in time and continue with the host.
func daemonsThatDoNotAnswer(t *testing.T) {
	answers := []struct {
		what string
		do   func(c net.Conn)
	}{
		{"no answer", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
		{"closes the connection", func(c net.Conn) {}},
		{"invalid answer", func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0x1b, '[', '2', 'J', 0xff}, 1000)) }},
		{"endless answer", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nApi-Version: 1.41\r\n\r\n[")
			for {
				if _, err := c.Write(bytes.Repeat([]byte(`"x",`), 1<<14)); err != nil {
					return
				}
			}
		}},
		{"endless header", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for {
				if _, err := c.Write([]byte("X-A: " + strings.Repeat("b", 1<<14) + "\r\n")); err != nil {
					return
				}
			}
		}},
	}
	engines := map[string][]string{"docker": {"docker/runc", "--docker-host"}, "containerd": {"containerd/runc", "--containerd-address"}, "CRI": {"cri+containerd/runc", "--cri"}}
	for _, a := range answers {
		for engine, args := range engines {
			if !torturing && (engine != "docker" || a.what == "no answer") { // the short test only waits for Docker
				continue
			}
			t.Run(engine+" "+a.what, func(t *testing.T) {
				dir := place(t)
				socket := filepath.Join(dir, "s.sock")
				listener := must.Get(net.Listen("unix", socket))(t)
				defer listener.Close()
				go func() {
					for {
						c, err := listener.Accept()
						if err != nil {
							return
						}
						go func() { a.do(c); _ = c.Close() }()
					}
				}()
				address := "unix://" + socket
				switch engine {
				case "containerd":
					address = socket
				case "CRI":
					address = "containerd=" + address
				}
				cmd, stdout, stderr := started(t, dir, "lifecycle", "host", args[0], args[1], address, "--missing", "skip", "--rounds", "1", "-o", "r.jsonl")
				began := time.Now()
				most := peak(t, cmd.Process.Pid, func() { _ = cmd.Wait() })
				n, _ := times(t, "r.jsonl", "host")
				wrong := cmd.ProcessState.ExitCode() != ExitDone || n == 0 || !strings.Contains(stderr.String(), "1 skipped: "+args[0]) || time.Since(began) > time.Minute ||
					most > 512<<20 || strings.ContainsRune(stdout.String()+stderr.String(), 0x1b)
				if wrong {
					t.Errorf("exit %d after %v with %d MiB, %d times of the host\n%.2000s%.2000s", cmd.ProcessState.ExitCode(), time.Since(began), most>>20, n, stdout, stderr)
				}
			})
		}
	}
}
