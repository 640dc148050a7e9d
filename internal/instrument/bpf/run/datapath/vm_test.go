package datapath

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/vm"
)

// The guest has cgroup v2 only, and an older kernel whose verifier looks at
// functions that are called back in another way (before Linux 6.7). It is emulated,
// so nothing is timed there.
func TestTheDatapathWorksOnPureCgroup2(t *testing.T) {
	if os.Getenv(guestVariable) != "" {
		t.Skip("this is the guest")
	}
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
	out, err := vm.Run(ctx, vm.Guest{
		Programs: []string{self},
		Commands: []vm.Command{
			{Name: "kernel", Args: []string{"uname", "-r"}, Limit: 10 * time.Second},
			{Name: "datapath", Args: []string{"env", guestVariable + "=1", self, "-test.v", "-test.skip", "TimePerRun"}, Limit: 3 * time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	said := string(out.Files["datapath.stdout"])
	t.Logf("on Linux %s%s", out.Files["kernel.stdout"], said)
	if out.Exits["datapath"] != 0 || strings.Count(said, "--- PASS") < 15 || strings.Count(said, "--- SKIP") != 1 {
		t.Errorf("it exited with %d: %s", out.Exits["datapath"], out.Files["datapath.stderr"])
	}
}

// guestVariable says to the tests that they are in the guest.
const guestVariable = "TARE_TEST_DATAPATH_GUEST"
