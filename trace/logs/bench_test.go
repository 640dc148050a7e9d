package logs

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
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

// BenchmarkRead reads 32 MiB of each form, as one source, and as two to merge.
func BenchmarkRead(b *testing.B) {
	const size = 32 << 20
	for _, bench := range []struct {
		name  string
		files []string
	}{
		{"kata", []string{"cripod.kata.log"}},
		{"containerd", []string{"cripod.containerd.log"}},
		{"cri-o", []string{"cri-o-1.34-info.log"}},
		{"runsc", []string{"runsc-boot.txt"}},
		{"published", []string{"published.txt"}},
		{"two", []string{"cripod.kata.log", "cripod.containerd.log"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var texts [][]byte
			for _, name := range bench.files {
				text, err := os.ReadFile("testdata/" + name)
				if err != nil {
					b.Fatal(err)
				}
				texts = append(texts, bytes.TrimRight(text, "\n"))
				texts[len(texts)-1] = append(texts[len(texts)-1], '\n')
			}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				var sources []Source
				for _, text := range texts {
					sources = append(sources, Source{Reader: repeat(text, size/int64(len(texts)))})
				}
				if _, err := Read(context.Background(), sources, func(*Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
