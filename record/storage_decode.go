package record

import (
	"encoding/json"
	"fmt"
)

// maxMounts is how many file systems a place can list.
const maxMounts = 100

// cellLine is a Cell whose lists are counted while they are read, for the reason
// that a batchLine's are.
type cellLine struct {
	Cell
	Seen *seenLine `json:"seen"`
}

type seenLine struct {
	Seen
	CPU      boundedTimes `json:"cpu"`
	Problems problemsLine `json:"problems"`
}

func (l *cellLine) take() {
	if l.Seen == nil {
		return
	}
	l.Cell.Seen = &l.Seen.Seen
	l.Cell.Seen.CPU, l.Cell.Seen.Problems = l.Seen.CPU, l.Seen.Problems.taken()
}

type boundedTimes []RoleTime

func (b *boundedTimes) UnmarshalJSON(text []byte) error {
	return eachOf(text, "cpu", func(decoder *json.Decoder) error {
		if len(*b) == maxRoles {
			return fmt.Errorf("more than %d roles in one cell", maxRoles)
		}
		*b = append(*b, RoleTime{})
		return decoder.Decode(&(*b)[len(*b)-1])
	})
}

// placeLine is a Place whose mounts are counted while they are read.
type placeLine struct {
	Place
	Mounts boundedMounts `json:"mounts"`
}

func (l *placeLine) take() { l.Place.Mounts = l.Mounts }

type boundedMounts []FileSystem

func (b *boundedMounts) UnmarshalJSON(text []byte) error {
	return eachOf(text, "mounts", func(decoder *json.Decoder) error {
		if len(*b) == maxMounts {
			return fmt.Errorf("more than %d mounts in one place", maxMounts)
		}
		*b = append(*b, FileSystem{})
		return decoder.Decode(&(*b)[len(*b)-1])
	})
}
