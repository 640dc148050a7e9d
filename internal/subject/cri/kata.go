package cri

import (
	"encoding/json"
	"strings"

	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/kata"
)

// kataFacts are what is known of Kata below the handler; nil if it is another
// runtime. Two handlers may differ in nothing but the file they name.
func (t *Target) kataFacts() map[string]string {
	p := t.program()
	switch {
	case !kata.Is(t.handler) && !kata.Is(p.kind) && !kata.Is(p.path) && !kata.Is(p.shim):
		return nil
	case !p.told:
		return kata.Unread("not told by the engine")
	}
	return containerd.KataFacts(t.socket, p.shim, p.config)
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
