package tool

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/target"
)

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		name string
		said target.Executed
		want string
	}{
		{"fio's", target.Executed{Output: "fio-3.33\n"}, "fio-3.33"},
		{"GNU dd's first line", target.Executed{Output: "dd (coreutils) 9.1\nCopyright\n"}, "dd (coreutils) 9.1"},
		{"busybox' usage", target.Executed{Exit: 1, Stderr: "dd: unrecognized option '--version'\nBusyBox v1.35.0 (Debian 1:1.35.0-4) multi-call binary.\n"}, "BusyBox v1.35.0"},
		{"none of a refusal", target.Executed{Exit: 1, Output: "error 5\n"}, ""},
		{"none of words", target.Executed{Output: "hello\n"}, ""},
		{"none of a flood", target.Executed{Output: strings.Repeat("1", 1000)}, ""},
		{"no control characters", target.Executed{Output: "fio-3\x1b[31m\n"}, `fio-3\x1b[31m`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Version(test.said); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
