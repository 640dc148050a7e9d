package enginetest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/floor"
	"github.com/tare-bench/tare/internal/subject/host"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// Local are the targets that need no engine. A runtime that isn't installed is
// skipped by its name.
var Local = []struct {
	Name string
	New  func(ctx context.Context) (subject.Target, error)
}{
	{"host", func(context.Context) (subject.Target, error) { return host.New(), nil }},
	{"floor", func(context.Context) (subject.Target, error) { return floor.New() }},
	{"runc", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "runc", "") }},
	{"crun", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "crun", "") }},
	{"youki", func(ctx context.Context) (subject.Target, error) {
		path := filepath.Join(filepath.Dir(engines.Runsc()), "youki") // as scripts/install-runtimes puts it
		if _, err := os.Stat(path); err != nil {
			path = ""
		}
		return oci.New(ctx, "youki", path)
	}},
	{"runsc", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "runsc", engines.Runsc()) }},
}
