package tracer

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/vm"
)

// The guest has an older kernel, whose verifier knows less of what a compiler makes,
// and whose structs are others. It is emulated, so nothing is timed there.
func TestAnOlderKernelTakesTheProgramsAndTellsTheSame(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the machine has x86-64 CPUs, and runs this test's own program")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const those = "TestASignalIsInTheStatus|TestCloseLeavesNothing"
	out, err := vm.Run(ctx, vm.Guest{
		Programs: []string{self},
		Commands: []vm.Command{
			{Name: "kernel", Args: []string{"uname", "-r"}, Limit: 10 * time.Second},
			{Name: "tracer", Args: []string{self, "-test.v", "-test.run", those}, Limit: 3 * time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := string(out.Files["tracer.stdout"])
	t.Logf("on Linux %s%s", out.Files["kernel.stdout"], said)
	if out.Exits["tracer"] != 0 || strings.Count(said, "--- PASS: Test") != 4 {
		t.Errorf("it exited with %d: %s", out.Exits["tracer"], out.Files["tracer.stderr"])
	}
}
