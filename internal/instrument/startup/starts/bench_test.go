package starts

import (
	"context"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// repeated is a text again and again, up to a size.
type repeated struct {
	text []byte
	at   int
	left int64
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(b, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
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

// BenchmarkStarts reads real logs again and again. MB/s is of reading and putting
// together; compare it with that of package logs, which only reads. On a machine
// with other work MB/cpu-s is the figure.
func BenchmarkStarts(b *testing.B) {
	for _, name := range []string{"cripod.kata.log", "cripod.containerd.log", "cri-o-1.34-info.log", "containerd-2.4-info.log", "runsc-boot.txt"} {
		text, err := os.ReadFile("../logs/testdata/" + name)
		if err != nil {
			b.Fatal(err)
		}
		const size = 32 << 20
		for _, way := range []string{"read", "read and put together"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				var events, given int64
				began := cpu(b)
				for range b.N {
					s := New(Options{Names: []string{name}}, func(*record.Start, int) error { given++; return nil })
					each := s.Add
					if way == "read" {
						each = func(*logs.Event) error { return nil }
					}
					stats, err := logs.Read(context.Background(), []logs.Source{{Name: name, Reader: &repeated{text: text, left: size}}}, each)
					if err != nil {
						b.Fatal(err)
					}
					events += stats.Events
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
				b.ReportMetric(float64(given)/float64(b.N), "starts/op")
				b.ReportMetric(float64(b.N)*size/1e6/(cpu(b)-began), "MB/cpu-s")
			})
		}
	}
}
