package starts

import (
	"bytes"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// podmanMarks maps podman's debug messages to marks. A message is identified by its
// prefix and the text after the container id.
var podmanMarks = []struct {
	begin, rest string
	mark        mark
}{
	{`Created container "`, "", mark{point: createReturned}},
	{"running conmon: ", "", mark{point: monitorCalled}},
	{"Created container ", " in OCI runtime", mark{point: created}},
	{"Starting container ", " with command", mark{point: begun}},
	{"Started container ", "", mark{point: started}},
	{`Container "`, "", mark{}}, {"Container ", " ", mark{}}, {"Setting ", "", mark{}},
}

// podman returns the facts of a line in podman's debug log.
func podman(e *logs.Event, all []fact) []fact {
	msg := e.Message
	if verb := after(msg, "Called ", '.'); bytes.Contains(msg, []byte("podman ")) && bytes.Contains(msg, []byte(".PersistentPreRunE(")) && slices.Contains([]string{"run", "create", "start", "play", "kube"}, string(verb)) {
		return append(all, fact{mark: mark{point: createCalled, call: "podman " + string(verb)}, step: asks})
	}
	for _, m := range podmanMarks {
		rest, ok := bytes.CutPrefix(msg, []byte(m.begin))
		if !ok {
			continue
		}
		id := wordAfter(rest, "")
		if m.mark.point == monitorCalled {
			id = wordAfter(append(bytes.Clone(msg), e.Command...), " -c ")
		}
		if len(id) < 12 || m.rest != "" && !bytes.Contains(rest, []byte(m.rest)) {
			continue
		}
		return append(all, fact{mark: m.mark, container: id, opens: m.mark.point == createReturned, made: true})
	}
	return append(all, fact{})
}
