package logs

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// repeated gives out the same bytes until it has given n of them.
type repeated struct {
	of   []byte
	at   int
	left int64
}

func repeat(of []byte, n int64) *repeated { return &repeated{of: of, left: n} }

func (r *repeated) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(b) && r.left > 0 {
		some := copy(b[n:min(len(b), n+int(min(r.left, int64(len(b)))))], r.of[r.at:])
		r.at = (r.at + some) % len(r.of)
		r.left -= int64(some)
		n += some
	}
	return n, nil
}

// journaled is a log as `journalctl -o json` would give it out, escaped once more.
func journaled(text []byte) []byte {
	var b []byte
	for line := range bytes.Lines(text) {
		b = append(b, `{"__CURSOR":"s=a","_SOURCE_REALTIME_TIMESTAMP":"1795229127500000","_PID":"7","SYSLOG_IDENTIFIER":"kata","_TRANSPORT":"syslog","MESSAGE":`...)
		b = strconv.AppendQuote(b, string(line))
		b = append(b, `,"__REALTIME_TIMESTAMP":"1795229127500001","PRIORITY":"6","_COMM":"containerd-shim"}`+"\n"...)
	}
	return b
}

// agents is the JSON of the agent that a log of Kata's carries.
func agents(text []byte) []byte {
	var b []byte
	for line := range bytes.Lines(text) {
		if i := bytes.Index(line, []byte(`vmconsole="{`)); i >= 0 {
			b = append(unescape(b, bytes.TrimSuffix(line[i+len(`vmconsole="`):], []byte("\"\n")), MaxLine), '\n')
		}
	}
	return b
}

// cpu returns the processor's time that this process has used, in seconds.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkRead reads 32 MiB of each form, as one source, and as two to merge. On a
// machine with other work MB/cpu-s is the figure: by the processor's time, not by
// the clock.
func BenchmarkRead(b *testing.B) {
	const size = 32 << 20
	for _, bench := range []struct {
		name  string
		files []string
		as    func([]byte) []byte
	}{
		{"kata", []string{"cripod.kata.log"}, nil},
		{"containerd", []string{"cripod.containerd.log"}, nil},
		{"cri-o", []string{"cri-o-1.34-info.log"}, nil},
		{"runsc", []string{"runsc-boot.txt"}, nil},
		{"published", []string{"published.txt"}, nil},
		{"agent's JSON", []string{"cripod.containerd.log"}, agents},
		{"journal's JSON", []string{"cripod.containerd.log"}, journaled},
		{"two", []string{"cripod.kata.log", "cripod.containerd.log"}, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var texts [][]byte
			for _, name := range bench.files {
				text, err := os.ReadFile("testdata/" + name)
				if err != nil {
					b.Fatal(err)
				}
				if bench.as != nil {
					text = bench.as(text)
				}
				texts = append(texts, bytes.TrimRight(text, "\n"))
				texts[len(texts)-1] = append(texts[len(texts)-1], '\n')
			}
			b.SetBytes(size)
			b.ReportAllocs()
			began := cpu(b)
			for b.Loop() {
				var sources []Source
				for _, text := range texts {
					sources = append(sources, Source{Reader: repeat(text, size/int64(len(texts)))})
				}
				if _, err := Read(context.Background(), sources, func(*Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*size/1e6/(cpu(b)-began), "MB/cpu-s")
		})
	}
}
