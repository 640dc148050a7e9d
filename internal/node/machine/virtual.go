package machine

import "strings"

// virtual names the hypervisor below, as far as it shows: "kvm", with the
// firmware's own words where there are any, "kvm (Amazon EC2 m5.large)". It is
// "" on bare metal, and "unknown" where all that shows is that there is one.
func (r Root) virtual(cpu cpuInfo) string {
	vendor, product := r.word("/sys/class/dmi/id/sys_vendor"), r.word("/sys/class/dmi/id/product_name")
	kind := r.paravirtual()
	if kind == "" && (cpu.hypervisor || !cpu.x86) {
		kind = firmwareKind(vendor, product)
	}
	if kind == "" && cpu.hypervisor {
		kind = "unknown"
	}
	firmware := strings.TrimSpace(vendor + " " + product)
	if kind == "" || firmware == "" {
		return kind
	}
	return kind + " (" + firmware + ")"
}

// paravirtual returns the hypervisor whose own interfaces the kernel has
// found: they exist nowhere else.
func (r Root) paravirtual() string {
	if xen := r.word("/sys/hypervisor/type"); xen != "" {
		return xen
	}
	_, sources := r.ClockSource()
	for _, source := range sources {
		switch {
		case source == "kvm-clock":
			return "kvm"
		case source == "xen":
			return "xen"
		case strings.HasPrefix(source, "hyperv_clocksource"):
			return "hyper-v"
		}
	}
	switch r.word("/proc/device-tree/hypervisor/compatible") { // Arm, POWER
	case "linux,kvm":
		return "kvm"
	case "xen,xen":
		return "xen"
	}
	return ""
}

// firmwareKind returns the hypervisor that the firmware's vendor stands for.
// Vendors that also sell bare metal are told apart by the product.
func firmwareKind(vendor, product string) string {
	switch vendor {
	case "QEMU":
		return "qemu"
	case "VMware, Inc.":
		return "vmware"
	case "innotek GmbH":
		return "virtualbox"
	case "Xen":
		return "xen"
	case "Microsoft Corporation":
		if product == "Virtual Machine" {
			return "hyper-v"
		}
	case "Amazon EC2":
		if !strings.Contains(product, ".metal") {
			return "kvm"
		}
	}
	return ""
}
