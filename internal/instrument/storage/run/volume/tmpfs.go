package volume

import (
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
)

// A tmpfs uses memory. Its size is that of the files plus spare for directories, if a
// fifth of the available memory remains.
const (
	spare     = 16 << 20
	maxOfRoom = 0.8
)

func (v *Volume) tmpfs(bytes int64) error {
	size := bytes + bytes/32 + spare
	h, err := nodestat.ReadHost(machine.Root(""))
	if err != nil {
		return err
	}
	if float64(size) > maxOfRoom*float64(h.Available) {
		return notHere("use a smaller --size or --scale, or a node with more memory",
			"a tmpfs of %d MiB would take more than 80 %% of the %d MiB of memory that are available", size>>20, h.Available>>20)
	}
	v.Workload.Tmpfs, v.On.HostType = size, "tmpfs"
	return nil
}
