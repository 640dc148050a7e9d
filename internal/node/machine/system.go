package machine

import "strings"

// Kernel returns the release of the kernel, such as "6.18.44", or "".
func (r Root) Kernel() string {
	return r.Word("/proc/sys/kernel/osrelease")
}

const osReleaseLimit = 64 << 10 // bytes; real files have about twenty lines

// system returns PRETTY_NAME of os-release(5). The second path counts only if the first
// file is missing.
func (r Root) system() string {
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if data, err := r.Read(file, osReleaseLimit); err == nil {
			return prettyName(string(data))
		}
	}
	return ""
}

// prettyName returns the last PRETTY_NAME of a file of shell assignments.
func prettyName(text string) string {
	name := ""
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			name = unquote(value)
		}
	}
	return name
}

// unquote removes shell quotes. os-release(5) allows single quotes, and double quotes with a
// backslash before " $ ` and itself.
func unquote(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] {
		return s
	}
	switch s[0] {
	case '\'':
		return s[1 : len(s)-1]
	case '"':
		return escapes.Replace(s[1 : len(s)-1])
	}
	return s
}

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")
