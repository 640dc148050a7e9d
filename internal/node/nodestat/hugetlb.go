package nodestat

import (
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// hugetlb adds up the pages of all sizes that are in use, and those that are kept
// for nobody yet, in bytes, from
// /sys/kernel/mm/hugepages/hugepages-2048kB (Documentation/admin-guide/mm/
// hugetlbpage.rst); /proc/meminfo has those of one size only. ok is false where
// it is not there.
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
		total, hasTotal := count(root, folder+e.Name()+"/nr_hugepages")
		free0, hasFree := count(root, folder+e.Name()+"/free_hugepages")
		if !cut || !cut2 || !isSize || !hasTotal || !hasFree || size == 0 || size > maxKiB || total > maxKiB/size {
			return 0, 0, false
		}
		free += min(free0, total) * size << 10
		used += max(total-free0, 0) * size << 10
	}
	return used, free, true
}

func count(root machine.Root, name string) (int64, bool) {
	line, err := root.FirstLine(name, 64)
	if err != nil {
		return 0, false
	}
	return machine.Number([]byte(line))
}

// maxKiB keeps sums from overflowing.
const maxKiB = 1 << 50
