// Package need skips a test on a machine that lacks what the test needs. The reason of the
// skip explains how to install it.
//
// Tests that need more than root and the programs that `make weigh` installs belong to a tier:
// engines, youki, cluster, browser, vm or tools. A tier runs only if the environment variable
// TARE_REQUIRE names it, as in TARE_REQUIRE=engines,browser, or is all. A missing requirement
// is then a failure. The Makefile has a target for each tier.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// TB is the part of testing.TB that is used here. Programs that are not tests start engines
// too, and pass an implementation of their own.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Variable is the environment variable that names the tiers to run, separated by commas.
const Variable = "TARE_REQUIRE"

const all = "all"

// Tiers are the names that Variable may hold, besides all.
var Tiers = []string{"engines", "youki", "cluster", "browser", "vm", "tools"}

// programs are tools with a different Debian package name, and tools that belong to a
// tier because they take long to build.
var programs = map[string]struct{ debian, tier string }{
	"mkfs.ext4":                {debian: "e2fsprogs"},
	"clang-14":                 {debian: "clang-14 llvm-14 libbpf-dev", tier: "tools"},
	"x86_64-linux-gnu-gcc-12":  {debian: "gcc-12", tier: "tools"},
	"aarch64-linux-gnu-gcc-12": {debian: "gcc-12-aarch64-linux-gnu", tier: "tools"},
}

// sbin are folders that are often missing from a user's PATH.
var sbin = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

// Root skips the test unless it runs as root.
func Root(t TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		lack(t, len(required(t)) > 0, "needs root")
	}
}

// Tool returns the path of a program, which is also looked for in the sbin folders.
func Tool(t TB, name string) string {
	t.Helper()
	p := programs[name]
	if p.tier != "" {
		tier(t, p.tier, name)
	}
	for _, candidate := range append([]string{name}, inside(sbin, name)...) {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if p.debian == "" {
		p.debian = name
	}
	lack(t, IsRequired("tools"), "needs %s: apt-get install %s", name, p.debian)
	return ""
}

// Runtime skips the test if this machine or tier lacks the OCI runtime with the given name.
// The host and the floor are always available.
func Runtime(t TB, name string) {
	t.Helper()
	switch name {
	case "host":
	case "floor":
		Root(t)
	case "runc", "crun":
		Root(t)
		Tool(t, name)
	case "youki":
		tier(t, "youki", name)
	default:
		Engine(t, name)
	}
}

// Engine skips the test of a container engine, or of a runtime that is built with the engines.
func Engine(t TB, name string) {
	t.Helper()
	tier(t, "engines", name)
}

// Cluster skips a test that starts a Kubernetes cluster.
func Cluster(t TB) {
	t.Helper()
	tier(t, "cluster", "a Kubernetes cluster")
}

// Browser skips a test that opens pages in Chromium.
func Browser(t TB) {
	t.Helper()
	tier(t, "browser", "Chromium")
}

// VM skips a test that boots a virtual machine.
func VM(t TB) {
	t.Helper()
	tier(t, "vm", "a virtual machine")
}

// Long skips a test that takes more than ten seconds, unless a tier is required.
func Long(t TB) {
	t.Helper()
	if len(required(t)) == 0 {
		t.Skipf("takes long: run make test-all")
	}
}

// Tools skips a test that checks tare against another program, which scripts/install-tests
// builds or fetches.
func Tools(t TB, name string) {
	t.Helper()
	tier(t, "tools", name)
}

func tier(t TB, name, what string) {
	t.Helper()
	required(t)
	if !IsRequired(name) {
		t.Skipf("needs %s: run make %s", what, target(name))
	}
	if name != "browser" && name != "tools" {
		Root(t)
	}
}

func target(tier string) string {
	if tier == "youki" {
		tier = all
	}
	return "test-" + tier
}

func lack(t TB, isFailure bool, format string, args ...any) {
	t.Helper()
	if isFailure {
		t.Fatalf("%s (%s=%s)", fmt.Sprintf(format, args...), Variable, os.Getenv(Variable))
	}
	t.Skipf(format, args...)
}

// IsRequired reports whether a tier runs.
func IsRequired(tier string) bool {
	names := named()
	return slices.Contains(names, tier) || slices.Contains(names, all)
}

func named() []string {
	return strings.FieldsFunc(os.Getenv(Variable), func(r rune) bool { return r == ',' })
}

// required returns the tiers to run. An unknown name ends the test; otherwise the
// requested tests would be skipped silently.
func required(t TB) []string {
	t.Helper()
	names := named()
	for _, name := range names {
		if name != all && !slices.Contains(Tiers, name) {
			t.Fatalf("unknown tier %q in %s (supported: %s, %s)", name, Variable, strings.Join(Tiers, ", "), all)
		}
	}
	return names
}

func inside(folders []string, name string) []string {
	var paths []string
	for _, folder := range folders {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}
