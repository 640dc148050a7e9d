package kata

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/record"
)

// Emulated returns the evidence that the VM of one of these sandboxes is emulated, "" for none.
// Only QEMU emulates CPUs.
func Emulated(ids []string) string {
	for _, f := range procs.Mentioning(ids) {
		if f.Role == record.RoleVMM {
			if why := emulated(&procs.Reader{}, f.Pid); why != "" {
				return why
			}
		}
	}
	return ""
}

func emulated(files *procs.Reader, pid int) string {
	d, err := files.Open(pid)
	if err != nil {
		return ""
	}
	defer d.Close()
	args, _ := d.Args() // none after its end
	named := accelerator.FindStringSubmatch(strings.Join(args, "\x00"))
	if named == nil || !strings.Contains(named[1], "tcg") {
		return ""
	}
	kvm := false
	held, err := d.Descriptors(func(_ string, target []byte) bool {
		kvm = string(target) == "/dev/kvm" || bytes.HasPrefix(target, []byte("anon_inode:kvm-"))
		return !kvm
	})
	switch {
	case kvm:
	case err == nil && held > 0:
		return fmt.Sprintf("QEMU runs with accel=%s without an open /dev/kvm", named[1])
	case named[1] == "tcg":
		return "QEMU runs with accel=tcg"
	}
	return ""
}

// accelerator matches QEMU's accelerator: "-accel tcg,thread=multi", "-machine q35,accel=kvm:tcg".
var accelerator = regexp.MustCompile(`\x00-(?:accel\x00|(?:machine|M)\x00[^\x00]*accel=)([a-z:]+)`)

// Absent is the fact with the configured files that do not exist.
const Absent = "kata absent"

// vmFacts adds facts that affect the cost of a VM, from the hypervisor's settings and the machine:
// "emulated" is the reason for emulation, "acceleration" what executes a guest's code.
func vmFacts(root machine.Root, hypervisor string, settings map[string]any, into map[string]string) {
	word := func(key string) string { s, _ := settings[key].(string); return s }
	facts := map[string]string{"shared_fs": word("shared_fs"), "virtio_fs_cache": word("virtio_fs_cache"),
		"guest kernel": guestKernel(word("kernel")), "hypervisor version": version(word("path"))}
	accelerators := word("machine_accelerators")
	// A container may lack /dev/kvm, while sysfs shows the kernel's devices.
	kvm := root.Exists("/dev/kvm") || root.Exists("/sys/class/misc/kvm")
	cpu, _ := root.Read("/proc/cpuinfo", 64<<10)
	switch {
	case strings.Contains(accelerators, "tcg"):
		facts["emulated"] = "machine_accelerators is " + accelerators
	case !kvm && hypervisor == "qemu" && root.Exists("/sys/class/misc"):
		facts["emulated"] = "the kernel has no KVM device"
	case !kvm && hypervisor == "qemu":
		facts["acceleration"] = "KVM or emulation: unknown"
	case !kvm || hypervisor == "remote": // not KVM, or a remote machine
	case root.Exists("/sys/module/kvm_pvm"):
		facts["acceleration"] = "KVM, PVM"
	case strings.Contains(string(cpu), " hypervisor "):
		facts["acceleration"] = "KVM, nested"
	case strings.Contains(string(cpu), "\nflags"): // x86, where a nested machine has the flag
		facts["acceleration"] = "KVM"
	default:
		facts["acceleration"] = "KVM, nested: unknown"
	}
	var absent []string
	for _, key := range []string{"path", "kernel", "image", "initrd", "virtio_fs_daemon"} {
		if file := word(key); filepath.IsAbs(file) && !root.Exists(file) && (key != "virtio_fs_daemon" || strings.HasPrefix(word("shared_fs"), "virtio-fs")) {
			absent = append(absent, key+" "+file)
		}
	}
	facts[Absent] = strings.Join(absent, ", ")
	for key, value := range facts {
		if value != "" {
			into[key] = value
		}
	}
}

// guestKernel returns the file name of a kernel, links resolved, with the version from the
// header of an x86 kernel (Documentation/arch/x86/boot.rst).
func guestKernel(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || path == "" {
		return ""
	}
	name := filepath.Base(real)
	head, _ := machine.ReadPlain(real, 0, 32<<10)
	n := len(head)
	const magic, pointer, setup = 0x202, 0x20e, 0x200
	if n < pointer+2 || string(head[magic:magic+4]) != "HdrS" {
		return name
	}
	at := setup + int(binary.LittleEndian.Uint16(head[pointer:]))
	release, _, _ := strings.Cut(string(head[min(at, n):min(at+64, n)]), " ")
	if release, _, _ = strings.Cut(release, "\x00"); release == "" || strings.Contains(name, release) {
		return name
	}
	return name + " (" + release + ")"
}

// version returns the first line of a hypervisor's version output; "" for a script.
func version(path string) string {
	if !filepath.IsAbs(path) || !isELF(path) {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := child.Run(ctx, child.Command{Args: []string{path, "--version"}})
	line, _, _ := strings.Cut(strings.TrimSpace(out.Output), "\n")
	if err != nil || len(line) > 120 {
		return ""
	}
	return line
}
