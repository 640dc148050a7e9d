package bpfstat

import (
	"path"
	"strings"

	"github.com/tare-bench/tare/record"
)

// Owner says whose a program is, as far as that is recognised: "kmesh", "cilium",
// "systemd", "tare", or "". The names of Kmesh's programs are everyone's
// ("sockops_prog"), so it goes by the names of maps and by pins.
func Owner(p *record.Program) string {
	for _, a := range p.Maps {
		if owner := ownerByMap(a.Name); owner != "" {
			return owner
		}
	}
	for _, pin := range p.Pins {
		if owner := ownerByPin(pin); owner != "" {
			return owner
		}
	}
	switch {
	case strings.HasPrefix(p.Name, "sd_"):
		return "systemd" // sd_fw_ingress, sd_devices, sd_restrictif_i
	case strings.HasPrefix(p.Name, "cil_"):
		return "cilium" // cil_from_netdev, cil_sock4_connect
	case strings.HasPrefix(p.Name, "tare"):
		return "tare"
	}
	return ""
}

func ownerByMap(name string) string {
	switch {
	case strings.HasPrefix(name, "km_"), strings.HasPrefix(name, "kmesh_map"):
		return "kmesh"
	case strings.HasPrefix(name, "cilium_"):
		return "cilium"
	case strings.HasPrefix(name, "sd_"):
		return "systemd"
	case strings.HasPrefix(name, "tare"):
		return "tare"
	}
	return ""
}

// ownerByPin goes by the folders and the name below any mount of a bpffs:
// bpf_kmesh and bpf_kmesh_workload, cilium and tc/globals/cilium_…, systemd.
func ownerByPin(pin string) string {
	for part := range strings.SplitSeq(path.Clean(pin), "/") {
		switch {
		case strings.HasPrefix(part, "bpf_kmesh"):
			return "kmesh"
		case part == "cilium", strings.HasPrefix(part, "cilium_"):
			return "cilium"
		case part == "systemd", strings.HasPrefix(part, "sd_"):
			return "systemd"
		}
	}
	return ""
}

// Total adds up the memory of programs and of the maps that they use, each map once
// however many of them use it, with the maps inside of it. Memory that is not known
// adds nothing. shared is the number of maps that more than one program uses.
func Total(programs []record.Program) (bytes int64, shared int) {
	seen := map[uint32]bool{}
	for i := range programs {
		bytes += max(0, programs[i].Memory)
		for _, a := range programs[i].Maps {
			if seen[a.ID] {
				continue
			}
			seen[a.ID] = true
			bytes += max(0, a.Memory) + max(0, a.InnerMemory)
			if a.Shared > 1 {
				shared++
			}
		}
	}
	return bytes, shared
}
