package oci

import (
	"context"
	"debug/buildinfo"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client/pkg/versions"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// flavour is how a runtime deviates from the standard command line.
type flavour struct {
	name          string
	global        []string // arguments before the verb
	refusesHybrid bool     // crun ≤ 1.8: "drop all controllers from cgroupv2"
	guestClock    bool     // the workload's CLOCK_MONOTONIC is not the host's
	lagsState     bool     // the state "stopped" appears some time after the end of the process
	detaches      bool     // exec --detach leaves only the command itself behind
	install       string
}

// known are the known runtimes, by the first word of their --version output.
var known = []flavour{
	{name: "runc", detaches: true, install: "apt-get install runc"},
	{name: "crun", refusesHybrid: true, detaches: true, install: "apt-get install crun"},
	{name: "youki", detaches: true, install: "cargo install youki --locked --features v1,v2,systemd,seccomp"},
	// systrap needs no KVM. Without a network stack, like the containers of the others.
	{name: "runsc", global: []string{"--platform=systrap", "--network=none"}, guestClock: true, lagsState: true,
		install: "CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@latest"},
}

// versioned matches "runc version 1.1.5" and "youki version: 0.7.0", else the first number after the
// first word.
var versioned = regexp.MustCompile(`^(?:.*?\s)?version:?\s+(\S+)|^\S+(?:\s.*?)?\s(v?\d\S*)`)

// identify returns the runtime and its version from its --version output.
func identify(banner, name string) (flavour, string) {
	line, _, _ := strings.Cut(strings.TrimSpace(banner), "\n")
	version := ""
	if m := versioned.FindStringSubmatch(line); m != nil {
		version = m[1] + m[2]
	}
	first, _, _ := strings.Cut(line, " ")
	if i := slices.IndexFunc(known, func(f flavour) bool { return f.name == strings.TrimSuffix(first, ":") }); i >= 0 {
		return known[i], version
	}
	return flavour{name: name}, version
}

// ask queries a program's version, which also identifies it. A runsc built by go install reports
// VERSION_MISSING; its version is in the Go build information.
func ask(ctx context.Context, path, name string) (f flavour, version, banner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a busy emulated machine takes more than ten
	defer cancel()
	out, err := cli.Program{Path: path}.Run(ctx, "--version")
	if err != nil {
		return f, "", "", err
	}
	banner = string(out)
	f, version = identify(banner, name)
	if version == "" || version == "VERSION_MISSING" {
		version = ""
		if info, err := buildinfo.ReadFile(path); err == nil {
			version = info.Main.Version
		}
	}
	return f, version, banner, nil
}

// Version returns the version of a runtime's program, "" if unknown.
func Version(ctx context.Context, path string) string {
	_, version, _, _ := ask(ctx, path, "")
	return version
}

func install(name string) string {
	for _, f := range known {
		if f.name == name {
			return f.install
		}
	}
	return "give its path: NAME=/path/to/runtime"
}

// bundleSpec is the newest runtime spec with a feature in use.
const bundleSpec = "1.0.2"

var specLine = regexp.MustCompile(`(?m)^[ \t]*spec: (\d{1,4}\.\d{1,4}\.\d{1,4})(?:-.*)?\s*$`)

// specVersion returns the spec version for bundles: the runtime's if that is older, since some
// runtimes refuse newer ones.
func specVersion(banner string) string {
	if m := specLine.FindStringSubmatch(banner); m != nil && versions.LessThan(m[1], bundleSpec) {
		return m[1]
	}
	return bundleSpec
}
