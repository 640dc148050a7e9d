package docker

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"
)

func TestALogIsTakenApartStrictly(t *testing.T) {
	frame := func(stream byte, text string) string {
		return string([]byte{stream, 0, 0, 0, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
	}
	for log, want := range map[string]string{
		"":              "",
		"short":         "",
		frame(1, "a\n"): "a\n",
		frame(2, "e\n") + frame(1, "a\n") + frame(1, "b\n"): "a\nb\n",
		frame(1, "a") + frame(9, "b"):                       "a",
		frame(1, "a") + frame(1, "bcd")[:10]:                "a",
		"\x01\x00\x00\x00\xff\xff\xff\xffabc":               "",
	} {
		if got := stdout([]byte(log)); got != want {
			t.Errorf("%q gave %q, not %q", log, got, want)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x02a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(stdout(b)) > len(b) {
			t.Error("it grew")
		}
	})
}

func TestALogDriverThatCannotBeReadIsTold(t *testing.T) {
	for driver, c := range map[string]struct {
		api  string
		want string
	}{
		"json-file": {"1.41", ""}, "local": {"1.41", ""}, "journald": {"1.41", ""},
		"none": {"1.41", "no log can be read"}, "syslog": {"1.40", "cannot be read before Docker 20.10"}, "fluentd": {"1.41", "own cache"},
	} {
		if got := logNote(system.Info{LoggingDriver: driver}, c.api); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", driver, got)
		}
	}
}
