package tool

import (
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		name           string
		exit           int
		stdout, stderr string
		want           string
	}{
		{"fio's", 0, "fio-3.33\n", "", "fio-3.33"},
		{"GNU dd's first line", 0, "dd (coreutils) 9.1\nCopyright\n", "", "dd (coreutils) 9.1"},
		{"busybox' usage", 1, "", "dd: unrecognized option '--version'\nBusyBox v1.35.0 (Debian 1:1.35.0-4) multi-call binary.\n", "BusyBox v1.35.0"},
		{"none of a refusal", 1, "error 5\n", "", ""},
		{"none of words", 0, "hello\n", "", ""},
		{"none of a flood", 0, strings.Repeat("1", 1000), "", ""},
		{"no control characters", 0, "fio-3\x1b[31m\n", "", `fio-3\x1b[31m`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Version(test.exit, test.stdout, test.stderr); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
