package machine

import "strings"

// Kernel returns the kernel's release, "6.18.44", as uname(2) gives it; "" when
// it can't be read.
func (r Root) Kernel() string {
	return r.word("/proc/sys/kernel/osrelease")
}

// osReleaseLimit is far above any os-release; they have about twenty lines.
const osReleaseLimit = 64 << 10

// system returns PRETTY_NAME of os-release(5), whose second place counts only
// where the first file is missing.
func (r Root) system() string {
	data, err := r.Read("/etc/os-release", osReleaseLimit)
	if err != nil {
		data, err = r.Read("/usr/lib/os-release", osReleaseLimit)
	}
	if err != nil {
		return ""
	}
	return prettyName(string(data))
}

// prettyName finds PRETTY_NAME. The file is shell assignments; the last one of
// a name counts, as it would in a shell.
func prettyName(text string) string {
	name := ""
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			name = unquote(value)
		}
	}
	return name
}

// unquote takes off a shell's quotes. os-release(5) allows single quotes, and
// double quotes in which a backslash goes before " $ ` and itself.
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
