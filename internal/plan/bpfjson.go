package plan

import "encoding/json"

type plainBPF BPF

type bpfJSON struct {
	*plainBPF
	Duration string `json:"duration"`
	Idle     string `json:"idle"`
	Budget   string `json:"budget"`
	Timeout  string `json:"timeout"`
}

// MarshalJSON writes durations as text.
func (b BPF) MarshalJSON() ([]byte, error) {
	return json.Marshal(bpfJSON{(*plainBPF)(&b), formatDuration(b.Duration), formatDuration(b.Idle), formatDuration(b.Budget), formatDuration(b.Timeout)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *BPF) UnmarshalJSON(text []byte) error {
	plain := new(plainBPF)
	read := bpfJSON{plainBPF: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := parseDurations([]durationText{{"duration", read.Duration, &plain.Duration}, {"idle", read.Idle, &plain.Idle},
		{"budget", read.Budget, &plain.Budget}, {"timeout", read.Timeout, &plain.Timeout}}); err != nil {
		return err
	}
	*b = BPF(*plain)
	return nil
}
