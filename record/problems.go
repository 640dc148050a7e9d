package record

import "slices"

const maxExamples = 5

// Note adds an example of a problem, if it is new and there are not too many yet.
func (p *Problems) Note(text string) {
	if len(p.Examples) < maxExamples && !slices.Contains(p.Examples, text) {
		p.Examples = append(slices.Clip(p.Examples), text) // do not overwrite a shared array
	}
}

// Add adds the counts and the examples of another Problems.
func (p *Problems) Add(more *Problems) {
	p.Gone += more.Gone
	p.Reused += more.Reused
	p.Denied += more.Denied
	p.Backwards += more.Backwards
	p.Broken += more.Broken
	for _, text := range more.Examples {
		p.Note(text)
	}
}
