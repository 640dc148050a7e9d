// Package live runs an interactive terminal view and restores the terminal on every exit.
// It wraps bubbletea.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/term"
)

// Possible reports whether out is a terminal that supports cursor movement, see
// terminfo(5). A terminal without TERM counts as unsupported.
func Possible(out io.Writer) bool {
	kind := os.Getenv("TERM")
	return term.IsTerminal(out) && kind != "" && kind != "dumb"
}

// framesPerSecond is high enough for keys to seem immediate, at negligible cost.
const framesPerSecond = 30

// run shows a model on out until it quits or ctx ends. It returns nil if the model quit,
// and otherwise ctx's error. It reads keys from the terminal of out, whatever standard
// input is.
func run(ctx context.Context, out io.Writer, m tea.Model) error {
	out = term.Whole(out)
	f, ok := out.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("the output has no descriptor")
	}
	// The link works even if the terminal's path does not exist in this mount namespace.
	in, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open the terminal to read keys: %w", err)
	}
	defer in.Close()
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond)).Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("show the live view: %w", err)
	}
	return nil
}
