package containerd

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/target/engine"
)

// Device is the path of the block device that a workload names, as engines want
// it; "" for none. runtime is all that is known of the runtime by name.
//
// runc, crun and youki make its node and open the devices cgroup to it; Kata
// plugs it into its VM. gVisor makes a node that opens with ENXIO.
func Device(w target.Workload, runtime string) (string, error) {
	d, err := engine.FindDevice(w)
	if d.Node != "" && (strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor")) {
		return "", fmt.Errorf("the device %s: %w: gVisor's kernel has no drivers of block devices; choose another runtime, or a volume", w.Device, target.ErrUnsupported)
	}
	return d.Node, err
}
