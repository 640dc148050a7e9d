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

// noShim is containerd's, where tests have an engine with a shim.
var noShim = containerd.NoShim

// askKata finds out what is known of Kata below the handler, if it is Kata's. Two
// handlers may differ in nothing but the file they name. The error is for one whose
// shim is not here, which an engine may have configured all the same.
func (t *Target) askKata(ctx context.Context) error {
	p := t.program()
	if !kata.Is(t.handler) && !kata.Is(p.kind) && !kata.Is(p.path) && !kata.Is(p.shim) {
		return nil
	}
	if p.shim != "" && kata.Is(p.shim) {
		if where := noShim(t.socket, p.shim); where != "" {
			return engine.Unavailable(t.name, "install Kata Containers and link "+filepath.Base(p.shim)+" into one of those folders",
				"%s has the handler configured, but its shim %s is not in %s", t.engineName, p.shim, where)
		}
	}
	if t.kata = kata.Unread("not told by the engine"); p.told {
		t.kata = containerd.KataFacts(ctx, t.socket, p.shim, p.config)
	}
	return nil
}

// options are those of a handler of containerd, as its configuration has them.
// What is no table leaves them unknown, and all else of the status as it is.
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

// configPath is the configuration file that containerd names to a shim of a
// kind, and whether that is known. To all but the shims that have options of
// their own it hands those of runtimeoptions.v1: TypeUrl, ConfigPath, and from
// 1.7 on ConfigBody, which Kata does not read (GenerateRuntimeOptions of the CRI
// plugin). Its TOML finds ConfigPath in any case.
func (o options) configPath(kind string) (path string, told bool) {
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
			return "", false // containerd refuses the one, and takes either of the other
		}
		path = text
	}
	return path, true
}
