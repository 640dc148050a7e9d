// Package version says which tare this is.
package version

import "runtime/debug"

// Version is what git describe said of the tree. The linker sets it when the
// program is built with make; use [String], which knows the other cases too.
var Version string

// Unknown is the version of what does not tell it.
const Unknown = "unknown"

// String returns the version that make built; else the version of the module
// that go install fetched, or the commit that go build saw.
func String() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return Of(info)
	}
	return Unknown
}

// Of returns the version of a tare binary from the build information that go build wrote into it.
func Of(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return Unknown
	}
	return revision + dirty
}
