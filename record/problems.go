package record

import "slices"

// maxExamples is how many problems are told in words.
const maxExamples = 5

// Note keeps one of the first few problems in words, each once.
func (p *Problems) Note(text string) {
	if len(p.Examples) < maxExamples && !slices.Contains(p.Examples, text) {
		p.Examples = append(slices.Clip(p.Examples), text) // another's may begin alike
	}
}

// Add adds up the counts, and keeps the first few examples of both.
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
