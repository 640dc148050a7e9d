// Package live runs a view that a person looks at: it takes the terminal, and gives it
// back on every path. All of that is bubbletea's; here is what tare asks of it.
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

// Possible tells whether out is a terminal that obeys cursor codes, see terminfo(5): of
// one without a type nothing is known.
func Possible(out io.Writer) bool {
	kind := os.Getenv("TERM")
	return term.IsTerminal(out) && kind != "" && kind != "dumb"
}

// framesPerSecond is enough for keys to seem to act at once, and costs nothing to speak of.
const framesPerSecond = 30

// run shows a model on out until it quits, for which it returns nil, or ctx ends, for
// which it returns ctx's error. Keys are read from the terminal that out is, wherever the
// standard input comes from.
func run(ctx context.Context, out io.Writer, m tea.Model) error {
	out = term.Whole(out)
	f, ok := out.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("the output has no descriptor")
	}
	// The link leads to the terminal also where its name is not to be seen here.
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
