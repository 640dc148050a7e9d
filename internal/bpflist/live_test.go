package bpflist

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/term"
)

func TestTheLiveViewFitsItsScreen(t *testing.T) {
	s := (&shown{}).watch(nil)
	if lines := s.Draw(50, 8); len(lines) != 1 {
		t.Errorf("before the first look: %q", lines)
	}
	s.Show(view(t))
	lines := s.Draw(50, 8)
	if len(lines) != 8 || lines[7] != "q quit" || !strings.Contains(lines[6], "ID") {
		t.Errorf("%d lines of 8: %q", len(lines), lines)
	}
	for _, line := range lines {
		if term.Width(line) > 50 {
			t.Errorf("%q is wider than 50", line)
		}
	}
}
