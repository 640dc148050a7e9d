package tool

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
)

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		name string
		said subject.Executed
		want string
	}{
		{"fio's", subject.Executed{Output: "fio-3.33\n"}, "fio-3.33"},
		{"GNU dd's first line", subject.Executed{Output: "dd (coreutils) 9.1\nCopyright\n"}, "dd (coreutils) 9.1"},
		{"busybox' usage", subject.Executed{Exit: 1, Stderr: "dd: unrecognized option '--version'\nBusyBox v1.35.0 (Debian 1:1.35.0-4) multi-call binary.\n"}, "BusyBox v1.35.0"},
		{"none of a refusal", subject.Executed{Exit: 1, Output: "error 5\n"}, ""},
		{"none of words", subject.Executed{Output: "hello\n"}, ""},
		{"none of a flood", subject.Executed{Output: strings.Repeat("1", 1000)}, ""},
		{"no control characters", subject.Executed{Output: "fio-3\x1b[31m\n"}, `fio-3\x1b[31m`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Version(test.said); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
