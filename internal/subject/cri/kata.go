package cri

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
)

// noShim is containerd.NoShim; tests replace it.
var noShim = containerd.NoShim

// askKata collects the facts about Kata if the handler is Kata's. Two handlers may differ only
// in their configuration file. It returns an error if the configured shim is missing here.
func (t *Target) askKata(ctx context.Context) error {
	p := t.program()
	if !kata.Is(t.handler) && !kata.Is(p.kind) && !kata.Is(p.path) && !kata.Is(p.shim) {
		return nil
	}
	if p.shim != "" && kata.Is(p.shim) {
		if where := noShim(t.socket, p.shim); where != "" {
			return engine.Unavailable(t.name, "install Kata Containers and link "+filepath.Base(p.shim)+" into one of those folders",
				"%s has the handler, but its shim %s is not in %s", t.engineName, p.shim, where)
		}
	}
	if t.kata = kata.Unread("not reported by the engine"); p.configKnown {
		t.kata = containerd.KataFacts(ctx, t.socket, p.shim, p.config)
	}
	return nil
}

// options are the options of a handler in containerd's configuration. Invalid options count as
// unknown and do not affect the rest of the status.
type options struct {
	values map[string]any
	broken bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *options) UnmarshalJSON(text []byte) error {
	o.values = nil
	o.broken = json.Unmarshal(text, &o.values) != nil
	return nil
}

// configPath returns the configuration file that containerd passes to a shim of a kind, and
// whether it is known. Shims without options of their own get those of runtimeoptions.v1:
// TypeUrl, ConfigPath, and since 1.7 ConfigBody, which Kata ignores (GenerateRuntimeOptions of
// the CRI plugin). containerd matches the key ConfigPath in any case.
func (o options) configPath(kind string) (path string, known bool) {
	if o.broken {
		return "", false
	}
	for _, own := range []string{"io.containerd.runc.", "io.containerd.runtime.v1.linux", "io.containerd.runhcs."} {
		if strings.HasPrefix(kind, own) {
			return "", false
		}
	}
	for key, value := range o.values {
		if !strings.EqualFold(key, "ConfigPath") {
			continue
		}
		text, is := value.(string)
		if !is || path != "" && path != text {
			return "", false // containerd refuses a non-string, and takes either of two paths
		}
		path = text
	}
	return path, true
}
