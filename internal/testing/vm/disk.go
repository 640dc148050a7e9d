package vm

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Disk is a disk with a Debian whose init is systemd. What a guest changes on it is
// in a file of the test, so the next guest with the same Disk finds it.
type Disk struct {
	kernel  string
	modules []string // that the kernel needs to read the disk, in the order of loading
	changes string   // a qcow2 file over the disk that scripts/install-vm-debian made
}

//go:embed init-disk
var initDisk string

//go:embed guest.service
var guestService string

// NewDisk returns a disk of a Debian suite as it was installed. The folder gets the changes.
func NewDisk(ctx context.Context, suite, folder string) (*Disk, error) {
	how := installDebian + " " + suite
	disk, err := newest("disk of Debian "+suite, how, "vm-debian-"+suite+"-*", "disk")
	if err != nil {
		return nil, err
	}
	image, err := program("qemu-img", how)
	if err != nil {
		return nil, err
	}
	d := &Disk{kernel: filepath.Join(filepath.Dir(disk), "vmlinuz"), changes: filepath.Join(folder, suite+".qcow2")}
	if d.modules, err = filepath.Glob(filepath.Join(filepath.Dir(disk), "modules", "*.ko")); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, image, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", disk, d.changes).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s create %s: %w: %s", image, d.changes, err, out)
	}
	return d, nil
}

// args are QEMU's for the disk. What the guest flushes is flushed: a killed QEMU
// leaves what a power cut would.
func (d *Disk) args() []string {
	return []string{"-drive", "if=none,id=disk,format=qcow2,cache=writeback,aio=threads,file=" + d.changes, "-device", "virtio-blk-pci,drive=disk"}
}
