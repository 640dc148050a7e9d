package doctor

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// A kernel's configuration has about 250 KB, a fifth of it when compressed.
const configLimit = 4 << 20

// builtWithout says so when the kernel's own configuration shows that it lacks
// an option; "" when it has it, or when the configuration can't be seen. It
// decides between "there is a command" and "there is none".
func (s *subject) builtWithout(option string) string {
	if s.config == nil {
		s.config = parseConfig(s.kernelConfig())
	}
	if len(s.config) == 0 || s.config[option] != "" {
		return ""
	}
	return "this kernel was built without " + option
}

// kernelConfig returns the configuration from the kernel itself, where it was
// built with CONFIG_IKCONFIG_PROC, or from where distributions put it.
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

// parseConfig reads lines such as "CONFIG_PSI=y". What is not set is a comment
// and stays out.
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
