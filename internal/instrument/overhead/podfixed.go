package overhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// PodFixed is a RuntimeClass's overhead.podFixed, or the allocatable resources of a
// node. A plan writes it as Kubernetes quantities, {cpu: 250m, memory: 160Mi}.
type PodFixed struct {
	CPU    int64 // milli-CPUs
	Memory int64 // bytes
	// Declared selects the overhead that each target's RuntimeClass declares in its cluster.
	Declared bool
}

// declared is the plan value for Declared.
const declared = "declared"

// checkKind returns a podFixedKind that also accepts the word declared.
func checkKind() option.Kind[*PodFixed] {
	k := podFixedKind("check")
	read, parse := k.Read, k.Parse
	word := func(s string) (*PodFixed, error) {
		if s == declared {
			return &PodFixed{Declared: true}, nil
		}
		return nil, fmt.Errorf("%s is not an overhead: write cpu and memory below it, as {cpu: 250m, memory: 160Mi}, or the word %s", option.Quote(s), declared)
	}
	k.Parse = func(s string) (*PodFixed, error) {
		if s == declared {
			return word(s)
		}
		return parse(s)
	}
	k.Read = func(n option.Node) (*PodFixed, bool) {
		if n.Mapping() {
			return read(n)
		}
		return option.Scalar(n, word)
	}
	k.Schema = option.Schema{"oneOf": []option.Schema{k.Schema, {"const": declared}}}
	return k
}

// podFixedKind returns the option kind: a mapping below key in a plan, one word with both
// values on a command line.
func podFixedKind(key string) option.Kind[*PodFixed] {
	return option.Kind[*PodFixed]{
		Read: func(n option.Node) (*PodFixed, bool) {
			p := new(PodFixed)
			return p, option.ReadPart(n.Named(key+"."), key, p)
		},
		Parse: func(s string) (*PodFixed, error) {
			p, err := parsePodFixed(s)
			return &p, err
		},
		Format: func(*PodFixed) string { return "" }, Type: "string",
		Schema: option.Describe(option.Of(new(PodFixed))),
	}
}

// Declare declares CPU and memory.
func (p *PodFixed) Declare(s *option.Set) {
	option.Var(s, &p.CPU, "cpu", "250m, 0.25 or 1", terms.MilliCPU)
	option.Var(s, &p.Memory, "memory", "160Mi, 1Gi, 128M (10^6) or bytes", terms.Memory)
}

// parsePodFixed parses "250m,160Mi", in either order. The units are those of
// Kubernetes: CPU as 250m, 0.25 or 1; memory as 160Mi, 1Gi, 128M or bytes. If the
// units are ambiguous, names help: "cpu=1,memory=167772160".
func parsePodFixed(s string) (PodFixed, error) {
	p, err := podFixed(s)
	if wrong := p.wrong(""); err == nil && len(wrong) > 0 {
		err = errors.New(wrong[0].Message)
	}
	if err != nil {
		return PodFixed{}, fmt.Errorf("%s is not CPU and memory: %w; write both, such as 250m,160Mi", option.Quote(s), err)
	}
	return p, nil
}

func podFixed(s string) (p PodFixed, err error) {
	words := strings.Split(s, ",")
	if len(words) != 2 {
		return p, errors.New("it needs two parts, with one comma between them")
	}
	first, cpu := kindOfQuantity(words[0])
	second, memory := kindOfQuantity(words[1])
	switch {
	case first == "" && second == "":
		return p, errors.New("which of the two is memory has no sign")
	case first == second:
		return p, fmt.Errorf("both parts are %s", first)
	case first == "memory" || second == "cpu": // a bare number is the opposite of the other quantity
		cpu, memory = memory, cpu
	}
	if p.CPU, err = terms.ParseMilliCPU(cpu); err == nil {
		p.Memory, err = terms.ParseMemory(memory)
	}
	return p, err
}

// kindOfQuantity returns the kind of a quantity by its name or unit: "cpu", "memory", or
// "" for a bare whole number.
func kindOfQuantity(word string) (kind, quantity string) {
	name, value, named := strings.Cut(word, "=")
	if name = strings.TrimSpace(name); named && (name == "cpu" || name == "memory") {
		return name, strings.TrimSpace(value)
	}
	word = strings.TrimSpace(word)
	switch unit := strings.TrimLeft(word, "0123456789."); {
	case unit == "" && !strings.Contains(word, "."):
		return "", word
	case unit == "" || unit == "m":
		return "cpu", word
	}
	return "memory", word
}

// wrong accepts 0 for either value, as Kubernetes does.
func (p *PodFixed) wrong(key string) option.FieldErrors {
	var all option.FieldErrors
	if p == nil || p.Declared {
		return nil
	}
	if p.CPU < 0 || p.CPU > terms.MaxCPU*1000 {
		all = append(all, option.Wrongf(key+".cpu", "%dm is not an amount of CPU: from 0 to %d are allowed", p.CPU, terms.MaxCPU))
	}
	if p.Memory < 0 {
		all = append(all, option.Wrongf(key+".memory", "%d is not an amount of memory: write 0 or more, such as 160Mi", p.Memory))
	}
	if p.CPU == 0 && p.Memory == 0 {
		all = append(all, option.Wrongf(key, "it reserves nothing: write cpu and memory, such as {cpu: 250m, memory: 160Mi}"))
	}
	return all
}

// quantities is the form of a PodFixed in a plan and in a RuntimeClass.
type quantities struct {
	CPU    string          `json:"cpu"`
	Memory json.RawMessage `json:"memory"`
}

// MarshalJSON writes Kubernetes quantities, so the plan in a record is a valid plan file.
func (p PodFixed) MarshalJSON() ([]byte, error) {
	if p.Declared {
		return json.Marshal(declared)
	}
	memory := strconv.FormatInt(p.Memory, 10)
	if p.Memory != 0 && p.Memory%(1<<20) == 0 {
		memory = fmt.Sprintf("%q", fmt.Sprintf("%dMi", p.Memory>>20))
	}
	return json.Marshal(quantities{fmt.Sprintf("%dm", p.CPU), json.RawMessage(memory)})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (p *PodFixed) UnmarshalJSON(text []byte) error {
	if string(text) == strconv.Quote(declared) {
		*p = PodFixed{Declared: true}
		return nil
	}
	read := quantities{CPU: "0", Memory: json.RawMessage("0")}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	var err error
	*p, err = podFixed("cpu=" + read.CPU + ",memory=" + strings.Trim(string(read.Memory), `"`))
	return err
}
