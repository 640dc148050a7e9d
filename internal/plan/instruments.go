package plan

import (
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
)

// Instruments are all that there are.
func Instruments() []Instrument {
	return []Instrument{
		{"lifecycle", "How long each operation takes on each target.", func() option.Options { o := lifecycle.Defaults(); return &o }},
		{"overhead", "Whose memory and CPU a sandbox uses, and which cgroup is charged.", func() option.Options { o := overhead.Defaults(); return &o }},
		{"storage", "What I/O a runtime loses.", func() option.Options { o := storage.Defaults(); return &o }},
		{"startup", "Where the seconds of a start go.", func() option.Options { o := startup.Defaults(); return &o }},
		{"bpf", "What eBPF programs cost, and whose limit pays.", func() option.Options { o := bpf.DefaultsOfLoad(); return &o }},
	}
}
