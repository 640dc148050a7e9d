package probe

// InArgs is the command that runs a program in a folder, for programs that work
// where they are and engines that have no say in it: the probe goes there and
// becomes the program, with the environment that it has. The program is an
// absolute path. Where that fails it says so and exits 127.
func InArgs(dir string, program ...string) []string {
	return append([]string{Name, "in", dir}, program...)
}
