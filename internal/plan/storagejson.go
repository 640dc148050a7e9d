package plan

import (
	"encoding/json"
	"time"
)

type plainStorage Storage

type storageJSON struct {
	*plainStorage
	RuntimeLimit string `json:"runtime_limit"`
	Ceiling      string `json:"ceiling"`
	Settle       string `json:"settle"`
	Budget       string `json:"budget"`
	Timeout      string `json:"timeout"`
}

// MarshalJSON writes durations as text.
func (s Storage) MarshalJSON() ([]byte, error) {
	for _, list := range []*[]string{&s.Targets, &s.Volumes, &s.Cache} {
		if *list == nil {
			*list = []string{} // null would be no list to a reader
		}
	}
	if s.Jobs == nil {
		s.Jobs = []Job{}
	}
	return json.Marshal(storageJSON{
		(*plainStorage)(&s), formatDuration(s.RuntimeLimit), formatDuration(s.Ceiling), formatDuration(s.Settle),
		formatDuration(s.Budget), formatDuration(s.Timeout),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Storage) UnmarshalJSON(text []byte) error {
	plain := new(plainStorage)
	read := storageJSON{plainStorage: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := parseDurations([]durationText{
		{"runtime_limit", read.RuntimeLimit, &plain.RuntimeLimit}, {"ceiling", read.Ceiling, &plain.Ceiling}, {"settle", read.Settle, &plain.Settle},
		{"budget", read.Budget, &plain.Budget}, {"timeout", read.Timeout, &plain.Timeout},
	}); err != nil {
		return err
	}
	*s = Storage(*plain)
	return nil
}

type plainJob Job

// jobJSON writes sizes as bytes, which a plan file reads too.
type jobJSON struct {
	*plainJob
	Runtime string `json:"runtime,omitempty"`
}

// MarshalJSON writes the run time as text.
func (j Job) MarshalJSON() ([]byte, error) {
	out := jobJSON{plainJob: (*plainJob)(&j)}
	if j.Runtime != 0 {
		out.Runtime = formatDuration(j.Runtime)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (j *Job) UnmarshalJSON(text []byte) error {
	plain := new(plainJob)
	read := jobJSON{plainJob: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	var runtime time.Duration
	if err := parseDurations([]durationText{{"runtime", read.Runtime, &runtime}}); err != nil {
		return err
	}
	plain.Runtime = runtime
	*j = Job(*plain)
	return nil
}
