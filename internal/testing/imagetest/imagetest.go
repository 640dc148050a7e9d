// Package imagetest quickly creates fake tare binaries of any architecture for tests.
// They cannot be executed.
package imagetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime/debug"
	"strings"
)

// Commit is the commit of the binaries; Made is its time.
const (
	Commit = "0123456789abcdef0123456789abcdef01234567"
	Made   = "2026-02-03T04:05:06Z"
)

// Info returns the build information that go build writes to a tare binary.
func Info(arch string) *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.6", Path: "github.com/tare-bench/tare/cmd/tare",
		Main: debug.Module{Path: "github.com/tare-bench/tare", Version: "v1.2.3+dirty"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:x"},
			{Path: "example.com/b", Version: "v0.1.0", Replace: &debug.Module{Path: "example.com/c", Version: "v0.2.0"}},
		},
		Settings: []debug.BuildSetting{
			{Key: "GOARCH", Value: arch}, {Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: Commit}, {Key: "vcs.time", Value: Made},
		},
	}
}

// Binary returns an ELF file for a machine with one segment that contains the build
// information. kind is elf.PT_LOAD or another header type.
func Binary(machine elf.Machine, info *debug.BuildInfo, kinds ...elf.ProgType) []byte {
	const header, entry = 64, 56
	kinds = append([]elf.ProgType{elf.PT_LOAD}, kinds...)
	start := uint64(header+entry*len(kinds)+15) &^ 15
	data := buildInfo(info)
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&out, binary.LittleEndian, v) // writes to memory do not fail
		}
	}
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	put(elf.Header64{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: header, Ehsize: header, Phentsize: entry, Phnum: uint16(len(kinds)), Shentsize: 64})
	for _, k := range kinds {
		put(elf.Prog64{Type: uint32(k), Flags: uint32(elf.PF_R | elf.PF_W), Off: start, Vaddr: start, Filesz: uint64(len(data)), Memsz: uint64(len(data)), Align: 16})
	}
	put(make([]byte, start-uint64(out.Len())), data)
	return out.Bytes()
}

// buildInfo is the format that package debug/buildinfo of Go 1.18 and later reads.
func buildInfo(info *debug.BuildInfo) []byte {
	goes := *info
	goes.GoVersion = "" // written separately
	frame := strings.Repeat("-", 16)
	out := append([]byte("\xff Go buildinf:\x08\x02"), make([]byte, 16)...)
	for _, s := range []string{info.GoVersion, frame + goes.String() + frame} {
		out = append(binary.AppendUvarint(out, uint64(len(s))), s...)
	}
	return out
}
