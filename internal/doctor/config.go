package doctor

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// A kernel's configuration has about 250 KB, a fifth of it when compressed.
const configLimit = 4 << 20

// builtWithout returns a text if the kernel's configuration shows that an option is
// missing. It returns "" if the kernel has the option, or if the configuration is unknown.
// It decides whether a command can fix a check.
func (s *subject) builtWithout(option string) string {
	if s.config == nil {
		s.config = parseConfig(s.kernelConfig())
	}
	if len(s.config) == 0 || s.config[option] != "" {
		return ""
	}
	return "this kernel was built without " + option
}

// kernelConfig returns the configuration from the kernel itself (CONFIG_IKCONFIG_PROC), or
// from the distribution's file.
func (s *subject) kernelConfig() []byte {
	if packed, err := s.root.Read("/proc/config.gz", configLimit); err == nil {
		if z, err := gzip.NewReader(bytes.NewReader(packed)); err == nil {
			if text, err := io.ReadAll(io.LimitReader(z, configLimit)); err == nil {
				return text
			}
		}
	}
	text, err := s.root.Read("/boot/config-"+s.root.Kernel(), configLimit)
	if err != nil {
		return nil
	}
	return text
}

// parseConfig parses lines such as "CONFIG_PSI=y". Unset options are comments and ignored.
func parseConfig(text []byte) map[string]string {
	config := map[string]string{}
	for line := range strings.Lines(string(text)) {
		option, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.HasPrefix(option, "CONFIG_") {
			config[option] = value
		}
	}
	return config
}
