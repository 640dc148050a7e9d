package browser

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

var update = flag.Bool("update", false, "take the pictures of docs/screenshots anew")

const (
	screenshots = "../../../docs/screenshots"
	// tallest is the maximum height of a screenshot, which is shown between text.
	tallest = 1400
	// heaviest is the maximum size of a screenshot in the tree.
	heaviest = 150 << 10
)

func TestDocsHaveAScreenshotOfEveryPage(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range append(samples[:len(samples):len(samples)], sample{"records", "serve"}) {
		want = append(want, s.name+".png")
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(screenshots, s.name+".png")
			if *update {
				p := newTab(t)
				if s.command == "serve" {
					address := served(t, stored)
					p.home, _, _ = strings.Cut(address, "?")
					p.open(address)
				} else {
					p.show(s.name, s.html(t))
					p.await(drawn)
				}
				must.OK(t, os.WriteFile(path, smaller(t, p.picture(wide, tallest)), 0o644))
			}
			b := must.Get(os.ReadFile(path))(t)
			check.That(t, len(b) <= heaviest, "%d bytes", len(b))
			is, err := png.DecodeConfig(bytes.NewReader(b))
			check.That(t, err == nil && is.Width == wide && is.Height <= tallest, "%d × %d, %v", is.Width, is.Height, err)
		})
	}
	found := must.Get(os.ReadDir(screenshots))(t)
	for _, f := range found {
		check.That(t, slices.Contains(want, f.Name()), "%s has no page", f.Name())
	}
}

// smaller reduces a picture to 256 colours and merges almost equal ones.
func smaller(t *testing.T, picture []byte) []byte {
	t.Helper()
	img := must.Get(png.Decode(bytes.NewReader(picture)))(t)
	nearly := func(c color.Color) [3]uint32 {
		r, g, b, _ := c.RGBA()
		return [3]uint32{r >> 12, g >> 12, b >> 12}
	}
	b, often := img.Bounds(), map[color.Color]int{}
	for i := range b.Dx() * b.Dy() {
		often[img.At(i%b.Dx(), i/b.Dx())]++
	}
	colours := slices.SortedFunc(maps.Keys(often), func(x, y color.Color) int {
		return cmp.Or(often[y]-often[x], cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
	var kept color.Palette
	seen := map[[3]uint32]bool{}
	for _, c := range colours {
		if n := nearly(c); !seen[n] && len(kept) < 256 {
			seen[n] = true
			kept = append(kept, c)
		}
	}
	small, nearest := image.NewPaletted(b, kept), map[color.Color]uint8{}
	for _, c := range colours {
		nearest[c] = uint8(kept.Index(c))
	}
	for i := range small.Pix {
		small.Pix[i] = nearest[img.At(i%b.Dx(), i/b.Dx())]
	}
	var out bytes.Buffer
	must.OK(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small))
	return out.Bytes()
}
