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

// paravirtual identifies the hypervisor by an interface that only this hypervisor has.
func (r Root) paravirtual() string {
	if xen := r.Word("/sys/hypervisor/type"); xen != "" {
		return xen
	}
	_, sources := r.ClockSource()
	for _, source := range append(sources, r.Word("/proc/device-tree/hypervisor/compatible")) { // Arm, POWER
		if kind := interfaces[source]; kind != "" {
			return kind
		}
		if strings.HasPrefix(source, "hyperv_clocksource") {
			return "hyper-v"
		}
	}
	return ""
}

// interfaces maps clock sources and device trees to hypervisors.
var interfaces = map[string]string{"kvm-clock": "kvm", "xen": "xen", "linux,kvm": "kvm", "xen,xen": "xen"}

// vendors maps firmware vendors to hypervisors. It lists only vendors whose machines are all
// virtual.
var vendors = map[string]string{"QEMU": "qemu", "VMware, Inc.": "vmware", "innotek GmbH": "virtualbox", "Xen": "xen"}

// firmwareKind returns the hypervisor by the firmware's vendor, and by the product if the
// vendor also sells bare metal.
func firmwareKind(vendor, product string) string {
	switch {
	case vendor == "Microsoft Corporation" && product == "Virtual Machine":
		return "hyper-v"
	case vendor == "Amazon EC2" && !strings.Contains(product, ".metal"):
		return "kvm"
	}
	return vendors[vendor]
}
