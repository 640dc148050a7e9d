package plan

import "time"

// BPF asks what eBPF programs cost, and whose limit pays.
type BPF struct {
	Title string `json:"title,omitempty" yaml:"title"`
	// Case is record.CaseLoad, CaseQuota or CaseMemory.
	Case string `json:"case" yaml:"case"`
	// Datapath is "reference", tare's own programs; "" for what is loaded already,
	// of which the fields below choose.
	Datapath string   `json:"datapath" yaml:"datapath"`
	Kmesh    bool     `json:"kmesh,omitempty" yaml:"kmesh"`
	Names    []string `json:"names,omitempty" yaml:"names"` // globs
	Pins     []string `json:"pins,omitempty" yaml:"pins"`
	Cgroups  []string `json:"cgroups,omitempty" yaml:"cgroups"`
	Owners   []int    `json:"owners,omitempty" yaml:"owners"` // pids
	// URL is who is asked; "": a server of tare's own on loopback.
	URL         string        `json:"url,omitempty" yaml:"url"`
	Connections []int         `json:"connections,omitempty" yaml:"connections"`
	QPS         float64       `json:"qps,omitempty" yaml:"qps"` // 0: as many as it can
	KeepAlive   bool          `json:"keep_alive,omitempty" yaml:"keep_alive"`
	Duration    time.Duration `json:"duration" yaml:"duration"` // of the load at each point
	Idle        time.Duration `json:"idle" yaml:"idle"`         // before each load, and after it
	Rounds      int           `json:"rounds" yaml:"rounds"`
	// CPUs is the limit of the load's clients: 1 is one CPU; Instances clients
	// share it, each with its part.
	CPUs      float64       `json:"cpus,omitempty" yaml:"cpus"`
	Instances int           `json:"instances,omitempty" yaml:"instances"`
	Heavy     []int64       `json:"heavy,omitempty" yaml:"heavy"`       // rounds of the loop in the reference datapath's programs
	Services  []int         `json:"services,omitempty" yaml:"services"` // in its map
	Budget    time.Duration `json:"budget" yaml:"budget"`
	Timeout   time.Duration `json:"timeout" yaml:"timeout"` // of each request
	Seed      uint64        `json:"seed" yaml:"seed"`
}
