package bpflist

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

func TestTheLiveViewFitsItsScreenAndEndsWithAKey(t *testing.T) {
	s := &screen{interval: time.Second, width: 80, height: 24, look: func() (*View, error) { return view(t), nil }}
	s.Update(tea.WindowSizeMsg{Width: 50, Height: 8})
	if _, next := s.Update(s.Init()()); next == nil {
		t.Error("there is no next look")
	}
	lines := strings.Split(s.View().Content, "\n")
	if len(lines) != 8 || lines[7] != "q quit" || !strings.Contains(lines[6], "ID") {
		t.Errorf("%d lines of 8: %q", len(lines), lines)
	}
	for _, k := range []tea.Key{{Code: 'q', Text: "q"}, {Code: tea.KeyEscape}, {Code: 'c', Mod: tea.ModCtrl}} {
		if _, end := s.Update(tea.KeyPressMsg(k)); end == nil {
			t.Errorf("%s does not end it", k.Keystroke())
		}
	}
	if _, end := s.Update(looked{nil, os.ErrClosed}); end == nil || !errors.Is(s.err, os.ErrClosed) {
		t.Errorf("what cannot be read ends it with %v", s.err)
	}
}
