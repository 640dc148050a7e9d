package oci

import (
	"strconv"
	"strings"
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
	line := firstLine(banner)
	words := strings.Fields(line)
	version := ""
	for i, w := range words {
		if strings.TrimSuffix(w, ":") == "version" && i+1 < len(words) {
			version = words[i+1]
			break
		}
	}
	if version == "" && len(words) > 1 {
		version = words[1]
	}
	for _, f := range known {
		if len(words) > 0 && strings.TrimSuffix(words[0], ":") == f.name {
			return f, version
		}
	}
	return flavour{name: name}, version
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

// specVersion is the version to write into bundles: the runtime's own where
// that is older, since some refuse what is newer than they are.
func specVersion(banner string) string {
	for line := range strings.Lines(banner) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "spec: ")
		if !ok {
			continue
		}
		v, _, _ = strings.Cut(v, "-")
		if parts, ok := numbers(v); ok {
			if mine, _ := numbers(bundleSpec); less(parts, mine) {
				return v
			}
		}
	}
	return bundleSpec
}

func numbers(v string) (out [3]int, ok bool) {
	parts := strings.Split(v, ".")
	if len(parts) != 3 {
		return out, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
