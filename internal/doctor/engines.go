package doctor

import (
	"context"
	"os/exec"
	"strings"
	"time"
)

// AreaEngine is the area of the checks that Engines makes.
const AreaEngine = "engine"

// engines are the programs by which a container engine shows.
var engines = []struct{ name, program string }{
	{"docker", "docker"}, {"podman", "podman"}, {"containerd", "containerd"}, {"cri-o", "crio"}, {"isulad", "isula"},
}

// Engines looks for container engines by their programs. This version of tare
// weighs the runtimes below them, and says so.
func Engines(ctx context.Context) []Check {
	const notYet = "this version weighs the runtimes below the engines, not through them"
	var checks []Check
	for _, e := range engines {
		c := Check{Area: AreaEngine, Name: e.name, Status: Missing, Why: "not installed; " + notYet}
		if path, err := exec.LookPath(e.program); err == nil {
			c.Status, c.Why = Limited, path+"; "+notYet
			c.Version = programVersion(ctx, path)
		}
		checks = append(checks, c)
	}
	return checks
}

// programVersion is the first line of what --version prints, or nothing.
func programVersion(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out[:min(len(out), 4096)]), "\n")
	words := strings.Fields(line)
	for i, w := range words {
		if strings.EqualFold(strings.TrimSuffix(w, ":"), "version") && i+1 < len(words) {
			return strings.TrimSuffix(words[i+1], ",")
		}
	}
	return strings.Join(words, " ")
}
