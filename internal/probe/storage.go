package probe

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// FillArgs returns the command that fills files with incompressible data, for a container
// with the probe. It uses buffered writes of 1 MiB, then syncs the files and drops them
// from the page cache. It overwrites existing files and creates a missing folder, but not
// its parents. A block device counts as a file; nothing is created below /dev. A file that
// does not fit is truncated to 0.
func FillArgs(bytes int64, files ...string) []string {
	return append([]string{Name, "fill", strconv.FormatInt(bytes, 10)}, files...)
}

// EvictArgs returns the command that syncs files and drops them from the page cache of
// its kernel. Caches below that kernel keep them.
func EvictArgs(files ...string) []string {
	return append([]string{Name, "evict"}, files...)
}

// FileSystemArgs returns the command that calls statfs(2) for paths.
func FileSystemArgs(paths ...string) []string {
	return append([]string{Name, "fs"}, paths...)
}

// DirectArgs returns the command that reads the first 4 KiB of a file with O_DIRECT.
func DirectArgs(file string) []string {
	return []string{Name, "direct", file}
}

// Filled is the report of a probe that wrote files.
type Filled struct {
	Files int
	Bytes int64 // of each of them
	Took  time.Duration
}

// FileSystem is the result of statfs(2) for a path.
type FileSystem struct {
	Path  string
	Type  uint64        // the file system's magic number, as in linux/magic.h
	Size  int64         // bytes
	Free  int64         // bytes available to the caller
	Errno syscall.Errno // why the other fields are empty, or 0
}

// Direct is the result of a direct read.
type Direct struct {
	Taken bool
	Errno syscall.Errno // error with O_DIRECT if the file is readable without it
}

// FileError is the probe's error at a file. errors.Is and errors.As treat it as a
// syscall.Errno: ENOSPC, EROFS.
type FileError struct {
	Verb  string // "fill", "evict", "direct"
	Path  string
	Errno syscall.Errno
}

func (e *FileError) Error() string {
	return fmt.Sprintf("the probe's %s of %q: %v", e.Verb, e.Path, e.Errno)
}

func (e *FileError) Unwrap() error { return e.Errno }

// ParseFilled parses the output of FillArgs, like ParseHeld. An error at a file is a
// *FileError.
func ParseFilled(out string) (Filled, error) {
	v, err := outcome(out, "fill", 3)
	if err != nil {
		return Filled{}, err
	}
	if v[0] == 0 || v[1] == 0 {
		return Filled{}, errors.New("the probe reported that it wrote nothing")
	}
	return Filled{Files: int(v[0]), Bytes: v[1], Took: time.Duration(v[2])}, nil
}

// ParseEvicted parses the output of EvictArgs, the number of files. An error at a file
// is a *FileError.
func ParseEvicted(out string) (files int, err error) {
	v, err := outcome(out, "evict", 1)
	if err != nil {
		return 0, err
	}
	return int(v[0]), nil
}

// ParseDirect parses the output of DirectArgs. If the file is unreadable, the error is
// a *FileError.
func ParseDirect(out string) (Direct, error) {
	v, err := outcome(out, "direct", 1)
	if err != nil {
		return Direct{}, err
	}
	if v[0] > maxErrno {
		return Direct{}, fmt.Errorf("the probe's direct read reports the unknown error number %d", v[0])
	}
	return Direct{Taken: v[0] == 0, Errno: syscall.Errno(v[0])}, nil
}

// ParseFileSystems parses the output of FileSystemArgs: one result per path, in order.
// A failed statfs is not an error.
func ParseFileSystems(out string) ([]FileSystem, error) {
	var list []FileSystem
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(line, "tare-fs/1 ")
		if !ok {
			continue
		}
		fs, err := parseFileSystem(rest)
		if err != nil {
			return nil, fmt.Errorf("the probe's line %.80q: %w", line, err)
		}
		list = append(list, fs)
	}
	if list == nil {
		return nil, missing("tare-fs/1 ")
	}
	return list, nil
}

func parseFileSystem(rest string) (FileSystem, error) {
	if e, ok, err := parseFileError("fs", rest); ok {
		return FileSystem{Path: e.Path, Errno: e.Errno}, err
	}
	fields := strings.SplitN(rest, " ", 4)
	if len(fields) != 4 {
		return FileSystem{}, errors.New("it has too few fields")
	}
	kind, err1 := parseHex(fields[0])
	size, err2 := parseNumber(fields[1])
	free, err3 := parseNumber(fields[2])
	path, err4 := parsePath(fields[3])
	return FileSystem{Path: path, Type: kind, Size: size, Free: free}, cmp.Or(err1, err2, err3, err4)
}

// outcome returns the n numbers of a command's line, or the error in the line.
func outcome(out, verb string, n int) ([]int64, error) {
	prefix := "tare-" + verb + "/1 "
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		if e, ok, err := parseFileError(verb, rest); err != nil {
			return nil, fmt.Errorf("the probe's line %.80q: %w", line, err)
		} else if ok {
			return nil, &e
		}
	}
	return report(out, prefix, n)
}

// maxErrno is the largest that the kernel returns (linux/err.h).
const maxErrno = 4095

// parseFileError parses "error ERRNO PATH\n". ok is false for other lines.
func parseFileError(verb, rest string) (e FileError, ok bool, err error) {
	rest, ok = strings.CutPrefix(rest, "error ")
	if !ok {
		return e, false, nil
	}
	number, path, _ := strings.Cut(rest, " ")
	errno, err := parseNumber(number)
	if err == nil && (errno == 0 || errno > maxErrno) {
		err = fmt.Errorf("unknown error number %d", errno)
	}
	path, wrong := parsePath(path)
	return FileError{Verb: verb, Path: path, Errno: syscall.Errno(errno)}, true, cmp.Or(err, wrong)
}

// parsePath parses the rest of a line, which must be complete.
func parsePath(rest string) (string, error) {
	path, whole := strings.CutSuffix(rest, "\n")
	path = strings.TrimSuffix(path, "\r")
	if !whole || path == "" {
		return "", errors.New("it is truncated")
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%.80q is not a path that the probe accepts", path)
	}
	return path, nil
}

// parseHex parses at most 16 lower-case hex digits.
func parseHex(s string) (uint64, error) {
	if s == "" || len(s) > 16 || strings.Trim(s, "0123456789abcdef") != "" {
		return 0, fmt.Errorf("%.40q is not a hexadecimal number", s)
	}
	return strconv.ParseUint(s, 16, 64)
}
