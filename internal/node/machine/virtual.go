package machine

import "strings"

// virtual returns the hypervisor and the firmware's vendor and product, such as "kvm" or
// "kvm (Amazon EC2 m5.large)". It returns "" on bare metal, and "unknown" for an unknown
// hypervisor.
func (r Root) virtual(cpu cpuInfo) string {
	vendor, product := r.Word("/sys/class/dmi/id/sys_vendor"), r.Word("/sys/class/dmi/id/product_name")
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

// paravirtual returns the hypervisor by interfaces that only it has.
func (r Root) paravirtual() string {
	if xen := r.Word("/sys/hypervisor/type"); xen != "" {
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
	switch r.Word("/proc/device-tree/hypervisor/compatible") { // Arm, POWER
	case "linux,kvm":
		return "kvm"
	case "xen,xen":
		return "xen"
	}
	return ""
}

// firmwareKind returns the hypervisor by the firmware's vendor, and by the product if the
// vendor also sells bare metal.
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
