package bpfstat

import (
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// owners lists known owners by name prefixes of maps, programs and pins, and by pin
// directories. The names of Kmesh's programs are too generic to use ("sockops_prog").
var owners = []struct {
	name                 string
	maps, programs, pins []string
	folder               string
}{
	{"kmesh", []string{"km_", "kmesh_map"}, nil, []string{"bpf_kmesh"}, ""},
	{"cilium", []string{"cilium_"}, []string{"cil_"}, []string{"cilium_"}, "cilium"}, // cil_from_netdev, cil_sock4_connect
	{"systemd", []string{"sd_"}, []string{"sd_"}, []string{"sd_"}, "systemd"},        // sd_fw_ingress, sd_devices, sd_restrictif_i
	{"tare", []string{"tare"}, []string{"tare"}, nil, ""},
}

// ownerOf returns the owner of a program: "kmesh", "cilium", "systemd", "tare", or "".
func ownerOf(p *record.Program) string {
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
	return ownerWith(func(i int) bool { return begins(p.Name, owners[i].programs) })
}

// ownerWith returns the first known owner for which is returns true, or "".
func ownerWith(is func(i int) bool) string {
	for i := range owners {
		if is(i) {
			return owners[i].name
		}
	}
	return ""
}

func begins(name string, with []string) bool {
	return slices.ContainsFunc(with, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func ownerByMap(name string) string {
	return ownerWith(func(i int) bool { return begins(name, owners[i].maps) })
}

// ownerByPin returns the owner of a path below any bpffs mount: bpf_kmesh and
// bpf_kmesh_workload, cilium and tc/globals/cilium_…, systemd.
func ownerByPin(pin string) string {
	for part := range strings.SplitSeq(path.Clean(pin), "/") {
		if name := ownerWith(func(i int) bool { return begins(part, owners[i].pins) || part != "" && part == owners[i].folder }); name != "" {
			return name
		}
	}
	return ""
}
