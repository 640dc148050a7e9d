package top

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// sample returns a view of a node with three sandboxes.
func sample(t *testing.T) *view {
	t.Helper()
	v := new(view)
	must.OK(t, json.Unmarshal([]byte(must.Read(t, "testdata/view.json")), v))
	for i := range v.Sandboxes {
		s := &v.Sandboxes[i]
		s.key = append(s.IDs, "x")[0]
		s.text = strings.ToLower(s.Name + "\n" + s.engine())
	}
	return v
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (m *Maybe) UnmarshalJSON(text []byte) error {
	if m.OK = string(text) != "null"; !m.OK {
		return nil
	}
	return json.Unmarshal(text, &m.V)
}

// screenOf returns a screen that shows a view.
func screenOf(v *view) *screen {
	s := newScreen(&Options{Interval: time.Second}, false)
	s.watch(nil).Show(v)
	return s
}

func TestScreenFitsEverySize(t *testing.T) {
	for width, name := range map[int]string{60: "screen-60.txt", 80: "screen-80.txt", 120: "screen-120.txt"} {
		s := screenOf(sample(t))
		send(s, "enter")
		lines := s.frame(width, 24)
		if last := lines[len(lines)-1]; len(lines) != 24 || !strings.HasPrefix(last, "h help  q quit") || strings.Contains(last, "…") {
			t.Errorf("%d lines, want 24; the last one at width %d: %q", len(lines), width, last)
		}
		golden.Same(t, "testdata/"+name, strings.Join(lines, "\n")+"\n")
	}
	for width := 1; width < 210; width += 7 {
		for height := 1; height < 40; height += 3 {
			s := screenOf(sample(t))
			send(s, "enter")
			for _, s.help = range []bool{false, true} {
				lines := s.frame(width, height)
				must.That(t, len(lines) <= height, "%d×%d: %d lines", width, height, len(lines))
				for _, line := range lines {
					must.That(t, term.Width(line) <= max(width, narrowest), "%d×%d: line too wide: %q", width, height, line)
				}
			}
		}
	}
}

func TestHiddenColumnsAreListed(t *testing.T) {
	for width, want := range map[int]string{80: "wider: LIMIT FULL%", 60: "wider: ENGINE PROCS LIMIT FULL%", 120: ""} {
		text := strings.Join(screenOf(sample(t)).frame(width, 24), "\n")
		n := strings.Count(text, "wider: ")
		check.That(t, n <= 1 && (n == 1) == (want != "") && strings.Contains(text, want), "width %d: no %q in:\n%s", width, want, text)
	}
}

func TestHelpIsCompleteAtAnyWidth(t *testing.T) {
	want := strings.Join(strings.Fields(strings.Join(helpLines, " ")), " ")
	for _, width := range []int{30, 40, 60, 80, 120} {
		s := screenOf(sample(t))
		send(s, "h")
		text := strings.Join(s.frame(width, 100), "\n")
		got := strings.Join(strings.Fields(text), " ")
		check.That(t, strings.HasPrefix(got, want) && !strings.Contains(got, "… "), "width %d:\n%s", width, text)
		short := s.frame(width, 5)
		check.That(t, len(short) == 5 && short[4] == goesBack, "%d×5: the last line does not explain how to leave: %q", width, short)
	}
	s := screenOf(&view{})
	s.help = true
	golden.Same(t, "testdata/help-80.txt", strings.Join(s.frame(80, 24), "\n")+"\n")
}

func TestNodeCPUIsShownInCPUs(t *testing.T) {
	v := sample(t)
	v.Node.CPU, v.Node.CPUs = known(1.034), 2
	check.Contains(t, "text", v.text(&Selection{}, 120, false), "CPU 1.03 of 2 CPUs")
	v.Node.CPU = Maybe{}
	check.Contains(t, "text", v.text(&Selection{}, 120, false), "CPU ? of 2 CPUs")
}

func TestTextAndJSONMatchTheGoldenFiles(t *testing.T) {
	v := sample(t)
	golden.Same(t, "testdata/once.txt", v.text(&Selection{Sort: SortName}, 120, false))
	var b strings.Builder
	must.OK(t, v.writeJSON(&b, &Selection{}, true))
	golden.Same(t, "testdata/once.json", b.String())
	none := &view{}
	check.Contains(t, "text", none.text(&Selection{}, 80, false), "No containers or pods found.")
	none.unprivileged = true
	check.Contains(t, "text", none.text(&Selection{}, 80, false), "run as root to see all of them")
	check.Contains(t, "text", v.text(&Selection{Engine: "podman"}, 80, false), "No sandbox matches")
}

func TestColourIsOptional(t *testing.T) {
	for _, colour := range []bool{true, false} {
		s := screenOf(sample(t))
		s.colour = colour
		check.Equal(t, "colour", strings.Contains(strings.Join(s.frame(100, 24), ""), "\x1b["), colour)
	}
}

// send presses the named keys and reports whether the last one quits.
func send(s *screen, names string) (quit bool) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "f7": tea.KeyF7}
	for name := range strings.FieldsSeq(names) {
		k := tea.KeyPressMsg{Code: special[name]}
		switch {
		case name == "ctrl+c":
			k = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		case name == "space":
			k = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case k.Code == 0:
			k = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		_, quit = s.press(k.Key())
	}
	return quit
}

func TestKeysWorkAsDocumented(t *testing.T) {
	names := func(s *screen) (out string) {
		for i, b := range s.shown {
			mark := ""
			if i == s.at {
				mark = ">"
			}
			out += mark + b.key[:1] + " "
		}
		return strings.TrimSpace(out)
	}
	for _, row := range must.Rows(t, "testdata/keys.tsv") {
		claim, keys, want, quits := row[0], row[1], row[2], row[3] == "true"
		s := screenOf(sample(t))
		quit := send(s, keys)
		got := names(s)
		check.That(t, got == want && quit == quits, "%s: keys %q: got %s, quit %t; want %s, quit %t", claim, keys, got, quit, want, quits)
	}
	s := screenOf(sample(t))
	if send(s, "e + + space"); !s.expanded["kk"] || s.interval != 4*time.Second || !s.paused {
		t.Errorf("%+v %s %t", s.expanded, s.interval, s.paused)
	}
	if send(s, "left"+strings.Repeat(" -", 24)); s.expanded["kk"] || s.interval != fastest {
		t.Errorf("%+v %s", s.expanded, s.interval)
	}
}

func TestKeysDetermineTheNextReading(t *testing.T) {
	var expanded map[string]bool
	s := newScreen(&Options{Interval: 10 * time.Second}, false)
	w := s.watch(func(_ context.Context, keys map[string]bool) (*view, error) {
		expanded = keys
		return sample(t), nil
	})
	read := func() {
		v := must.Get(w.Look()(t.Context()))(t)
		w.Show(v)
	}
	read()
	check.Equal(t, "interval before the first rates", w.Interval(), 500*time.Millisecond)
	read()
	d := w.Interval()
	check.That(t, d == 10*time.Second && len(expanded) == 0, "interval %s, roles of %v", d, expanded)
	for _, c := range []struct {
		key   rune
		claim string
		want  time.Duration
	}{{'j', "moving the cursor does not read", -1}, {'e', "roles are read immediately", 0}, {'+', "a changed interval starts soon", time.Second}, {'-', "a changed interval starts soon", time.Second}} {
		next, _ := w.Press(tea.Key{Code: c.key, Text: string(c.key)})
		check.That(t, next == c.want, "%s: %s, want %s", c.claim, next, c.want)
	}
	if read(); len(expanded) != 1 {
		t.Errorf("read the roles of %v, want those of one sandbox", expanded)
	}
	if send(s, "space"); w.Interval() != 0 {
		t.Error("a paused view is read")
	}
}

func TestFiguresAreFormattedAndOptionsParsed(t *testing.T) {
	golden.Lines(t, "testdata/words.txt", func(t *testing.T, line string) (any, error) {
		what, text, _ := strings.Cut(line, ": ")
		n, err := strconv.ParseFloat(text, 64)
		switch figure := (Maybe{n, err == nil}); what {
		case "size":
			return size(figure), nil
		case "percent":
			return percent(figure), nil
		case "sort":
			return ParseSort(text)
		}
		return ParseEngine(text)
	})
}
