package kata

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// The arguments were recorded from a sandbox with QEMU and without KVM.
func TestQEMUWithoutKVMIsEmulated(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/proc/26377/cmdline"))(t)
	live := string(text)
	with := func(machine string) string { return strings.Replace(live, "q35,accel=tcg", machine, 1) }
	for name, c := range map[string]struct {
		args string
		held []string // descriptors; nil if unreadable
		want string
	}{
		"recorded sandbox":                  {live, nil, "QEMU runs with accel=tcg"},
		"recorded sandbox with descriptors": {live, []string{"/dev/null", "socket:[1]"}, "QEMU runs with accel=tcg without an open /dev/kvm"},
		"TCG with an open /dev/kvm":         {live, []string{"/dev/null", "/dev/kvm"}, ""},
		"KVM":                               {with("q35,accel=kvm"), []string{"anon_inode:kvm-vm"}, ""},
		"KVM without its descriptors":       {with("q35,accel=kvm"), []string{"/dev/null"}, ""},
		"fallback to TCG":                   {with("q35,accel=kvm:tcg"), []string{"/dev/null"}, "QEMU runs with accel=kvm:tcg without an open /dev/kvm"},
		"unreadable descriptors":            {with("q35,accel=kvm:tcg"), nil, ""},
		"separate -accel argument":          {with("q35") + "-accel\x00tcg,thread=multi\x00", nil, "QEMU runs with accel=tcg"},
		"other hypervisor":                  {"/usr/bin/cloud-hypervisor\x00--api-socket\x00/run/vc/vm/kk/clh.sock\x00", []string{"/dev/null"}, ""},
		"ended process":                     {"", nil, ""},
	} {
		root := t.TempDir()
		dir := filepath.Join("proc", "26377")
		file(t, root, filepath.Join(dir, "cmdline"), c.args)
		if c.held != nil {
			must.OK(t, os.Mkdir(filepath.Join(root, dir, "fd"), 0o755))
		}
		for fd, link := range c.held {
			must.OK(t, os.Symlink(link, filepath.Join(root, dir, "fd", strconv.Itoa(fd))))
		}
		check.Equal(t, name, emulated(&procs.Reader{Root: machine.Root(root)}, 26377), c.want)
	}
}

func TestVMIsFoundByTheSandboxID(t *testing.T) {
	t.Parallel()
	id := "emulated-" + strconv.Itoa(os.Getpid())
	in, w, err := os.Pipe()
	must.OK(t, err)
	defer w.Close()
	qemu := exec.Cmd{Path: "/bin/sh", Args: []string{"qemu-system-x86_64", "-c", "read x", "sh", "-machine", "q35,accel=tcg", "-qmp", "unix:/run/vc/vm/" + id + "/qmp.sock"}, Stdin: in}
	must.OK(t, qemu.Start())
	must.OK(t, in.Close())
	check.Equal(t, "Emulated", Emulated([]string{"another", id}), "QEMU runs with accel=tcg without an open /dev/kvm")
	check.Equal(t, "of another sandbox", Emulated([]string{"another"}), "")
	must.OK(t, w.Close())
	_ = qemu.Wait() // its read fails at EOF
}

func TestAccelerationFollowsTheMachine(t *testing.T) {
	t.Parallel()
	const kvm, nested, pvm = "dev/kvm", "proc/cpuinfo", "sys/module/kvm_pvm/x"
	const devices, registered, bare = "sys/class/misc/fuse", "sys/class/misc/kvm/dev", "proc/cpuinfo of a machine"
	for name, c := range map[string]struct {
		hypervisor, accelerators string
		there                    []string
		key, want                string
	}{
		"kernel without KVM":           {"qemu", "", []string{devices}, "emulated", "the kernel has no KVM device"},
		"container without devices":    {"qemu", "", nil, "acceleration", "KVM or emulation: unknown"},
		"container without /dev/kvm":   {"qemu", "", []string{devices, registered, nested}, "acceleration", "KVM, nested"},
		"other hypervisor without KVM": {"clh", "", nil, "", ""},
		"VM on another machine":        {"remote", "", []string{kvm}, "", ""},
		"configured accelerator":       {"qemu", "tcg", []string{kvm}, "emulated", "machine_accelerators is tcg"},
		"KVM":                          {"qemu", "", []string{kvm, bare}, "acceleration", "KVM"},
		"KVM, nesting unknown":         {"qemu", "", []string{kvm}, "acceleration", "KVM, nested: unknown"},
		"KVM in a VM":                  {"qemu", "", []string{kvm, nested}, "acceleration", "KVM, nested"},
		"PVM":                          {"clh", "", []string{kvm, nested, pvm}, "acceleration", "KVM, PVM"},
	} {
		root := t.TempDir()
		for _, path := range c.there {
			flags := map[bool]string{true: "fpu vme lahf_lm", false: "fpu vme hypervisor lahf_lm"}[path == bare]
			file(t, root, strings.TrimSuffix(path, " of a machine"), "processor\t: 0\nflags\t\t: "+flags+"\n")
		}
		got := map[string]string{}
		vmFacts(machine.Root(root), c.hypervisor, map[string]any{"machine_accelerators": c.accelerators, "shared_fs": "virtio-fs", "virtio_fs_cache": "auto"}, got)
		want := map[string]string{"shared_fs": "virtio-fs", "virtio_fs_cache": "auto"}
		if c.key != "" {
			want[c.key] = c.want
		}
		check.Equal(t, name, got, want)
	}
}

func TestMissingFilesAreListed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file(t, root, "opt/kata/qemu", "")
	for name, c := range map[string]struct {
		settings map[string]any
		want     string
	}{
		"all files exist":              {map[string]any{"path": "/opt/kata/qemu", "image": ""}, ""},
		"missing initrd and virtiofsd": {map[string]any{"path": "/opt/kata/qemu", "initrd": "/opt/kata/initrd", "shared_fs": "virtio-fs", "virtio_fs_daemon": "/opt/kata/virtiofsd"}, "initrd /opt/kata/initrd, virtio_fs_daemon /opt/kata/virtiofsd"},
		"unused virtiofsd":             {map[string]any{"shared_fs": "none", "virtio_fs_daemon": "/opt/kata/virtiofsd"}, ""},
	} {
		got := map[string]string{}
		vmFacts(machine.Root(root), "qemu", c.settings, got)
		check.Equal(t, name, got[Absent], c.want)
	}
}

func TestGuestKernelIsNamedWithLinksResolved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image := make([]byte, 0x400)
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x20e:], 0x100)
	copy(image[0x300:], "6.12.47 (root@x) #1 SMP\x00")
	for name, text := range map[string]string{"vmlinuz-6.12.47-160": string(image), "bzImage": string(image), "vmlinux-6.1": "\x7fELF"} {
		file(t, dir, name, text)
	}
	must.OK(t, os.Symlink("vmlinux-6.1", filepath.Join(dir, "vmlinux.container")))
	for path, want := range map[string]string{"vmlinux.container": "vmlinux-6.1", "vmlinuz-6.12.47-160": "vmlinuz-6.12.47-160", "bzImage": "bzImage (6.12.47)", "none": ""} {
		check.Equal(t, path, guestKernel(filepath.Join(dir, path)), want)
	}
}

func TestHypervisorVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	marker := filepath.Join(dir, "ran")
	file(t, dir, "script", "#!/bin/sh\ntouch "+marker+"\n")
	must.OK(t, os.Chmod(filepath.Join(dir, "script"), 0o755))
	check.Equal(t, "version", version(filepath.Join(dir, "script")), "")
	if _, err := os.Stat(marker); err == nil {
		t.Error("the script was executed")
	}
	real, err := filepath.EvalSymlinks("/bin/mount") // a program that supports --version
	must.OK(t, err)
	if got := version(real); !strings.Contains(got, "mount") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	check.Equal(t, "a name without a path", version("mount"), "")
}
