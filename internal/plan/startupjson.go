package plan

import "encoding/json"

type plainStartup Startup

type startupJSON struct {
	*plainStartup
	Budget  string `json:"budget"`
	Timeout string `json:"timeout"`
}

// MarshalJSON writes durations as text.
func (s Startup) MarshalJSON() ([]byte, error) {
	if s.Targets == nil {
		s.Targets = []string{} // null would be no list to a reader
	}
	return json.Marshal(startupJSON{(*plainStartup)(&s), formatDuration(s.Budget), formatDuration(s.Timeout)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Startup) UnmarshalJSON(text []byte) error {
	plain := new(plainStartup)
	read := startupJSON{plainStartup: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := parseDurations([]durationText{{"budget", read.Budget, &plain.Budget}, {"timeout", read.Timeout, &plain.Timeout}}); err != nil {
		return err
	}
	*s = Startup(*plain)
	return nil
}
