package probe

// InArgs returns the command that runs a program in a folder, for engines that cannot
// set the working directory: the probe changes its directory and executes the program,
// an absolute path, with its environment. If that fails, it prints an error and exits
// 127.
func InArgs(dir string, program ...string) []string {
	return append([]string{Name, "in", dir}, program...)
}
