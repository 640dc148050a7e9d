package cli

import (
	"context"
	"fmt"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/plan"
)

// perform does one measure of a plan.
func perform(ctx context.Context, s Streams, m plan.Measure, out outputFlags) error {
	switch o := m.Options.(type) {
	case *lifecycle.Options:
		return weighLifecycle(ctx, s, *o, out)
	case *overhead.Options:
		return weighOverhead(ctx, s, *o, out)
	case *storage.Options:
		return weighStorage(ctx, s, *o, out)
	case *startup.Options:
		return weighStartup(ctx, s, *o, out)
	case *bpf.Options:
		return weighBPF(ctx, s, *o, out)
	}
	return fmt.Errorf("nothing performs %s", m.Name)
}
