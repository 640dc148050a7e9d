package record

// Environment is the machine a record was made on: all that can change a
// figure without the target having changed. A field that could not be read is
// empty; it is never guessed.
type Environment struct {
	Kernel      string            `json:"kernel"` // uname release
	KernelBuild string            `json:"kernel_build,omitempty"`
	OS          string            `json:"os,omitempty"` // PRETTY_NAME
	Arch        string            `json:"arch"`
	CPUModel    string            `json:"cpu_model,omitempty"`
	CPUs        int               `json:"cpus"`               // usable by this process
	Governor    string            `json:"governor,omitempty"` // scaling governor, "" where the machine has none
	Memory      int64             `json:"memory"`             // bytes, MemTotal
	Swap        int64             `json:"swap"`
	Virtual     string            `json:"virtual,omitempty"` // hypervisor, as far as it shows
	Cgroup      string            `json:"cgroup"`            // "v1", "v2", "hybrid", "none"
	Controllers []string          `json:"controllers,omitempty"`
	Mitigations map[string]string `json:"mitigations,omitempty"` // /sys/devices/system/cpu/vulnerabilities
	MissingCaps []string          `json:"missing_capabilities,omitempty"`
	RootFS      string            `json:"root_fs,omitempty"` // file system type under the run's folder
	ClockSource string            `json:"clock_source,omitempty"`
	Lanes       string            `json:"lanes,omitempty"` // how tare's lanes wait: "SCHED_FIFO", "nice -20" or "ordinary"
	LoadStart   float64           `json:"load_start"`
}
