package vm

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Disk is a disk with a Debian that uses systemd. A guest's changes are in a file of the
// test, so the next guest with the same Disk sees them.
type Disk struct {
	kernel  string
	modules []string // modules that the kernel needs to read the disk, in loading order
	changes string   // a qcow2 file over the disk that scripts/install-vm-debian made
}

//go:embed init-disk
var initDisk string

//go:embed guest.service
var guestService string

// NewDisk returns a disk with a freshly installed Debian suite. Changes are stored in the
// folder.
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

// args returns QEMU's arguments for the disk. Flushed data is written, so a killed QEMU
// leaves the same state as a power cut.
func (d *Disk) args() []string {
	return []string{"-drive", "if=none,id=disk,format=qcow2,cache=writeback,aio=threads,file=" + d.changes, "-device", "virtio-blk-pci,drive=disk"}
}
