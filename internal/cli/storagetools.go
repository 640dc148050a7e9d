package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/subject/hosttools"
)

// carryTools finds the tools that the jobs need. It also uses fio, if available, to measure
// the device's limit.
func carryTools(ctx context.Context, p *storage.Options, o *storagerun.Options) error {
	o.Programs = map[string]string{}
	for _, name := range toolsOf(p) {
		program, err := findTool(ctx, name)
		if err != nil {
			return &notHere{err}
		}
		if o.Files, err = hosttools.Together(o.Files, program.Files); err != nil {
			return fmt.Errorf("copy %s into sandboxes: %w", name, err)
		}
		o.Programs[name] = program.Path
	}
	if o.Fio = o.Programs[storage.ToolFio]; o.Fio == "" && p.Ceiling > 0 {
		if fio, err := hosttools.Fio(ctx); err == nil {
			o.Fio = fio.Path
		}
	}
	return nil
}

// findTool finds one of the programs that generate storage load.
func findTool(ctx context.Context, name string) (*hosttools.Program, error) {
	if name == storage.ToolFio {
		return hosttools.Fio(ctx)
	}
	return hosttools.Find(ctx, name)
}

func toolsOf(p *storage.Options) []string {
	var names []string
	for _, j := range p.Jobs {
		if name := j.Tool; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
