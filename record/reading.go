package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What a line can list at most. An honest group or process takes some three
// hundred bytes of a line, so one of MaxLine has no more of them.
const (
	maxListed      = 1 << 16       // groups, processes and statistics of a reading, each
	maxMemberships = 2 * maxListed // of all processes of a reading
	maxSeriesNames = 64
	maxTicks       = 1 << 20
)

// readingLine is a Reading whose lists are counted while they are read, for
// the reason that a batchLine's are: empty elements would take many times the
// line's own length in memory.
type readingLine struct {
	Reading
	Groups    boundedGroups     `json:"groups"`
	Processes boundedProcesses  `json:"processes"`
	Engine    boundedStatistics `json:"engine"`
	Left      boundedTexts      `json:"left"`
	Problems  problemsLine      `json:"problems"`
}

func (l *readingLine) take() {
	l.Reading.Groups, l.Reading.Processes, l.Reading.Engine = l.Groups, l.Processes.list, l.Engine
	l.Reading.Left, l.Reading.Problems = l.Left, l.Problems.taken()
}

type problemsLine struct {
	Problems
	Examples boundedTexts `json:"examples"`
}

func (p *problemsLine) taken() Problems {
	p.Problems.Examples = p.Examples
	return p.Problems
}

type boundedTexts []string

func (s *boundedTexts) UnmarshalJSON(text []byte) error {
	return eachOf(text, "texts", func(decoder *json.Decoder) error {
		if len(*s) == maxListed {
			return fmt.Errorf("more than %d texts in one list", maxListed)
		}
		*s = append(*s, "")
		return decoder.Decode(&(*s)[len(*s)-1])
	})
}

type boundedGroups []Group

func (g *boundedGroups) UnmarshalJSON(text []byte) error {
	return eachOf(text, "groups", func(decoder *json.Decoder) error {
		if len(*g) == maxListed {
			return fmt.Errorf("more than %d groups in one reading", maxListed)
		}
		*g = append(*g, Group{})
		return decoder.Decode(&(*g)[len(*g)-1])
	})
}

type boundedStatistics []Statistic

func (s *boundedStatistics) UnmarshalJSON(text []byte) error {
	return eachOf(text, "engine", func(decoder *json.Decoder) error {
		if len(*s) == maxListed {
			return fmt.Errorf("more than %d of an engine's statistics in one reading", maxListed)
		}
		*s = append(*s, Statistic{})
		return decoder.Decode(&(*s)[len(*s)-1])
	})
}

type boundedProcesses struct {
	list        []Process
	memberships int
}

func (p *boundedProcesses) UnmarshalJSON(text []byte) error {
	return eachOf(text, "processes", func(decoder *json.Decoder) error {
		if len(p.list) == maxListed {
			return fmt.Errorf("more than %d processes in one reading", maxListed)
		}
		line := processLine{Groups: boundedMemberships{room: maxMemberships - p.memberships}}
		if err := decoder.Decode(&line); err != nil {
			return err
		}
		line.Process.Groups = line.Groups.list
		p.memberships += len(line.Groups.list)
		p.list = append(p.list, line.Process)
		return nil
	})
}

type processLine struct {
	Process
	Groups boundedMemberships `json:"groups"`
}

// boundedMemberships share their room with all processes of a reading: each
// holds a map, which takes hundreds of bytes.
type boundedMemberships struct {
	list []Membership
	room int
}

func (m *boundedMemberships) UnmarshalJSON(text []byte) error {
	return eachOf(text, "groups", func(decoder *json.Decoder) error {
		if len(m.list) == m.room {
			return fmt.Errorf("more than %d sets of cgroups in one reading", maxMemberships)
		}
		m.list = append(m.list, Membership{})
		return decoder.Decode(&m.list[len(m.list)-1])
	})
}

// seriesLine is a Series whose names and ticks are counted while they are read.
type seriesLine struct {
	Series
	Times    boundedTicks  `json:"times"`
	Values   boundedValues `json:"values"`
	Problems problemsLine  `json:"problems"`
}

func (l *seriesLine) take() {
	l.Series.Times, l.Series.Values, l.Series.Problems = l.Times, l.Values, l.Problems.taken()
}

type boundedTicks []int64

func (b *boundedTicks) UnmarshalJSON(text []byte) error {
	ticks := bytes.Count(text, []byte(",")) + 1
	if ticks > maxTicks {
		return fmt.Errorf("%d ticks: a series has at most %d", ticks, maxTicks)
	}
	var list []int64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*b = list
	return nil
}

type boundedValues map[string][]int64

func (v *boundedValues) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	open, err := decoder.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return errors.New("values is not an object")
	}
	*v = boundedValues{}
	for decoder.More() {
		if len(*v) == maxSeriesNames {
			return fmt.Errorf("more than %d series in one line", maxSeriesNames)
		}
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var values boundedTicks
		if err := decoder.Decode(&values); err != nil {
			return err
		}
		key, _ := name.(string) // what stands there in an object
		if _, twice := (*v)[key]; twice {
			return fmt.Errorf("series %.40q is there twice", key)
		}
		(*v)[key] = values
	}
	return nil
}
