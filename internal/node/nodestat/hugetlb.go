package nodestat

import (
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// hugetlb returns the used and free bytes of huge pages of all sizes from
// /sys/kernel/mm/hugepages (Documentation/admin-guide/mm/hugetlbpage.rst). /proc/meminfo
// has those of one size only. ok is false if the folder is missing.
func hugetlb(root machine.Root) (used, free int64, ok bool) {
	const folder = "/sys/kernel/mm/hugepages/"
	sizes, err := os.ReadDir(string(root) + folder)
	if err != nil {
		return 0, 0, false
	}
	for _, e := range sizes {
		digits, cut := strings.CutPrefix(e.Name(), "hugepages-")
		kib, cut2 := strings.CutSuffix(digits, "kB")
		size, isSize := machine.Number([]byte(kib))
		total, hasTotal := root.Number(folder + e.Name() + "/nr_hugepages")
		free0, hasFree := root.Number(folder + e.Name() + "/free_hugepages")
		if !cut || !cut2 || !isSize || !hasTotal || !hasFree || size == 0 || size > maxKiB || total > maxKiB/size {
			return 0, 0, false
		}
		free += min(free0, total) * size << 10
		used += max(total-free0, 0) * size << 10
	}
	return used, free, true
}

// maxKiB prevents overflow of sums.
const maxKiB = 1 << 50
