package oci

import (
	"context"
	"debug/buildinfo"
	"regexp"
	"strings"
	"time"

	"github.com/moby/moby/client/pkg/versions"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// flavour is how a runtime differs from the standard command line.
type flavour struct {
	name          string
	global        []string // arguments before the verb
	refusesHybrid bool     // crun ≤ 1.8: "drop all controllers from cgroupv2"
	guestClock    bool     // the workload's CLOCK_MONOTONIC is not the host's
	lagsState     bool     // "stopped" shows some time after the process is gone
	detaches      bool     // exec --detach leaves the command itself behind, and nothing else
	install       string
}

// known runtimes, by the first word of what --version prints.
var known = []flavour{
	{name: "runc", detaches: true, install: "apt-get install runc"},
	{name: "crun", refusesHybrid: true, detaches: true, install: "apt-get install crun"},
	{name: "youki", detaches: true, install: "cargo install youki --locked --features v1,v2,systemd,seccomp"},
	// systrap needs no KVM; the network stack of the sandbox is left out, as
	// the containers of the others have no network either.
	{name: "runsc", global: []string{"--platform=systrap", "--network=none"}, guestClock: true, lagsState: true,
		install: "CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@latest"},
}

// identify tells by its own words which runtime a program is, and its version.
func identify(banner, name string) (flavour, string) {
	line, _, _ := strings.Cut(strings.TrimSpace(banner), "\n")
	words := strings.Fields(line)
	version := ""
	for i, w := range words {
		if strings.TrimSuffix(w, ":") == "version" && i+1 < len(words) {
			version = words[i+1]
			break
		}
	}
	for i := 1; version == "" && i < len(words); i++ {
		if number := strings.TrimPrefix(words[i], "v"); number != "" && number[0] >= '0' && number[0] <= '9' {
			version = words[i]
		}
	}
	for _, f := range known {
		if len(words) > 0 && strings.TrimSuffix(words[0], ":") == f.name {
			return f, version
		}
	}
	return flavour{name: name}, version
}

// ask has a program say what it is: the first sign that it is what its name says.
// The version is also looked for where the Go toolchain puts it, since a runsc that
// was built by go install says VERSION_MISSING.
func ask(ctx context.Context, path, name string) (f flavour, version, banner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // an emulated machine beside others takes more than ten
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

// Version is that of a runtime's program, "" where it is not known.
func Version(ctx context.Context, path string) string {
	_, version, _, _ := ask(ctx, path, "") // one that says nothing has none
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

// bundleSpec is the newest version of the runtime spec whose features the
// bundle uses.
const bundleSpec = "1.0.2"

var isVersion = regexp.MustCompile(`^\d{1,4}\.\d{1,4}\.\d{1,4}$`).MatchString

// specVersion is the version to write into bundles: the runtime's own where
// that is older, since some refuse what is newer than they are.
func specVersion(banner string) string {
	for line := range strings.Lines(banner) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "spec: ")
		if !ok {
			continue
		}
		if v, _, _ = strings.Cut(v, "-"); isVersion(v) && versions.LessThan(v, bundleSpec) {
			return v
		}
	}
	return bundleSpec
}
