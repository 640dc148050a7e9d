package term

import (
	"os"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestLocaleWithoutUTF8GetsASCII(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no locale":             {nil, "24 µs ±5 % → 1.8×"},
		"C":                     {map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "24 us +-5 % -> 1.8x"},
		"POSIX by LANG":         {map[string]string{"LANG": "POSIX"}, "24 us +-5 % -> 1.8x"},
		"Latin-1":               {map[string]string{"LC_CTYPE": "de_DE.ISO-8859-1"}, "24 us +-5 % -> 1.8x"},
		"UTF-8":                 {map[string]string{"LANG": "de_DE.UTF-8"}, "24 µs ±5 % → 1.8×"},
		"C with UTF-8, as utf8": {map[string]string{"LC_ALL": "C.utf8", "LANG": "C"}, "24 µs ±5 % → 1.8×"},
	} {
		f := must.Get(os.Create(t.TempDir() + "/out"))(t)
		w := InLocale(f, func(name string) string { return c.env[name] })
		n := must.Get(w.Write([]byte("24 µs ±5 % → 1.8×")))(t)
		must.OK(t, f.Close())
		check.Equal(t, name, must.Read(t, f.Name()), c.want)
		check.That(t, n == len("24 µs ±5 % → 1.8×") && Whole(w) == f, "%s: %d bytes", name, n)
	}
	check.Equal(t, "characters without an ASCII spelling", ASCII("容器 é"), "?? ?")
}
